//! GLM 4.5 and later: the name and pairs of tags in `<tool_call>`. GLM 4: the name on a line, then JSON.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call, is_tool};
use crate::text_calls::parse_call::ParsedCall;
use crate::text_calls::{Scan, marks};

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "GLM",
    openers: &[
        // The server dropped `<tool_call>`, which is a special token.
        (r"(?m:^)[ \t]*[A-Za-z_][\w.\-]*\s*<arg_key>", read_pairs),
        (
            r"(?m:^)[ \t>]*[A-Za-z_][\w.\-]*[ \t]*\n[ \t]*(?:```(?:json)?[ \t]*\n\s*)?\{",
            read_line,
        ),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

fn read_pairs(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let text = opened.text;
    let (inner_end, end, closed) = marks::tag_end(text, "tool_call", opened.start);
    let inner = &text[opened.start..inner_end];
    match closed || scan.whole {
        true => (end, vec![scan.named(inner)]),
        false => (end, vec![scan.cut_call(inner)]),
    }
}

fn read_line(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let header = &opened.text[opened.start..opened.body];
    if !is_tool(scan, first_line(header)) {
        return opened.nothing();
    }
    let closers = ["```", "<|observation|>"];
    headed_call(scan, opened.text, opened.start, first_line, &closers)
        .unwrap_or_else(|| opened.nothing())
}

/// Returns the name, without the mark that Functionary writes before it.
fn first_line(header: &str) -> &str {
    let line = header.lines().next().unwrap_or_default();
    line.trim_matches([' ', '\t', '>'])
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>def total</arg_value>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<think>I need it.</think>\n<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>x</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>show_patch\n</tool_call>",
        calls: &[
            ("search", r#"{"pattern":"x","limit":3}"#),
            ("show_patch", "{}"),
        ],
    },
    Sample {
        text: "<tool_call>search<arg_key>pattern</arg_key><arg_value>def total</arg_value></tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "search\n<arg_key>pattern</arg_key>\n<arg_value>def total</arg_value>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "search\n{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_call>search\n<arg_key>pattern\n<arg_value>def total</arg_value>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_calls>\n<tool_call>search<tool_sep>\n<arg_key>pattern</arg_key>\n<arg_value>x</arg_value>\n</tool_call>\n</tool_calls>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    // DeepSeek's form without its tokens, and Functionary's.
    Sample {
        text: "functionsearch\n```json\n{\"pattern\": \"x\"}\n```",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: ">>>search\n{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
];
