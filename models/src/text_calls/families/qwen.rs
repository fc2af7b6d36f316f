//! Qwen 2.5 and 3 (JSON in `<tool_call>`), Qwen3-Coder (`<function=…>`), and Qwen-Agent (`✿FUNCTION✿`).

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Qwen",
    openers: &[(r"✿FUNCTION✿:?", read)],
    #[cfg(test)]
    samples: SAMPLES,
};

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    headed_call(scan, opened.text, opened.body, before_mark, &[])
        .unwrap_or_else(|| opened.nothing())
}

fn before_mark(header: &str) -> &str {
    header.split('✿').next().unwrap_or_default().trim()
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<think>\nFirst look.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"show_patch\", \"arguments\": {}}\n</tool_call><|im_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<tool_call>\n<function=search>\n<parameter=pattern>\ndef total\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total","limit":5}"#)],
    },
    Sample {
        text: "<function=search>\n<parameter=pattern>\ndef total\n</parameter>\n</function>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_call>\n<function = 'search'>\n<parameter = 'pattern'>\ndef total\n</parameter>\n</function>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    // The doubled braces of the template's own example, and a name before its arguments.
    Sample {
        text: "<tool_call>\n{{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<tool_call>\nsearch: {\"pattern\": \"a\"}\n</tool_call>\n<tool_call>\nsearch({\"pattern\": \"b\"})\n</tool_call>",
        calls: &[
            ("search", r#"{"pattern":"a"}"#),
            ("search", r#"{"pattern":"b"}"#),
        ],
    },
    // Reasoning that does not end before the call.
    Sample {
        text: "<think>\nI look.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<think>\nI look.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call>\n</think>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "✿FUNCTION✿: search\n✿ARGS✿: {\"pattern\": \"def total\"}\n✿RESULT✿:",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];
