//! MiniMax M1 (lines of JSON in `<tool_calls>`) and M2 (`<invoke>` in `<minimax:tool_call>`). The parent
//! module reads both; other models use the same tags with another prefix.

use super::Family;
#[cfg(test)]
use super::Sample;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "MiniMax",
    openers: &[],
    #[cfg(test)]
    samples: SAMPLES,
};

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<tool_calls>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n{\"name\": \"show_patch\", \"arguments\": {}}\n</tool_calls>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<minimax:tool_call>\n<invoke name=\"search\">\n<parameter name=\"pattern\">def total</parameter>\n<parameter name=\"limit\">5</parameter>\n</invoke>\n</minimax:tool_call>",
        calls: &[("search", r#"{"pattern":"def total","limit":5}"#)],
    },
    Sample {
        text: "<think>Two.</think>\n<minimax:tool_call>\n<invoke name=\"run_pytest\">\n<parameter name=\"tests\">[\"a\", \"b\"]</parameter>\n</invoke>\n<invoke name=\"show_patch\">\n</invoke>\n</minimax:tool_call>",
        calls: &[
            ("run_pytest", r#"{"tests":["a","b"]}"#),
            ("show_patch", "{}"),
        ],
    },
    // Grok, Claude's older form, and Cline's.
    Sample {
        text: "<xai:function_call name=\"search\">\n<parameter name=\"pattern\">a</parameter>\n</xai:function_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<function_calls>\n<invoke>\n<tool_name>search</tool_name>\n<parameters>\n<pattern>a</pattern>\n<limit>5</limit>\n</parameters>\n</invoke>\n</function_calls>",
        calls: &[("search", r#"{"pattern":"a","limit":5}"#)],
    },
    Sample {
        text: "<tool_use><name>search</name><arguments>{\"pattern\": \"a\"}</arguments></tool_use>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<tool_use><name>search</name><pattern>a</pattern></tool_use>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "I look.\n<search>\n<pattern>a</pattern>\n</search>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    // Seed-OSS, Step 3 and Claude's own form.
    Sample {
        text: "<seed:tool_call>\n<function=search>\n<parameter=pattern>def total</parameter>\n</function>\n</seed:tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<steptml:invoke name=\"search\"><steptml:parameter name=\"pattern\">def total</steptml:parameter></steptml:invoke>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function_calls>\n<invoke name=\"search\">\n<parameter name=\"pattern\">def total</parameter>\n</invoke>\n</function_calls>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];
