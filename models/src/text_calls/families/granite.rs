//! Granite: a list of JSON objects after `<|tool_call|>` (3.0 to 3.3) or `<tool_call>` (3.1), an object in
//! `<tool_call>` (4), or objects after `<function_call>` (20b-functioncalling).

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, json_or_python_calls};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Granite",
    openers: &[(r"<\|tool_calls?\|>", read)],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 4] = [
    "<|/tool_call|>",
    "<|/tool_calls|>",
    "<|end|>",
    "<|end_of_text|>",
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    json_or_python_calls(scan, opened, &CLOSERS)
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<|tool_call|>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}]<|end_of_text|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_call>[{\"arguments\": {\"pattern\": \"a\"}, \"name\": \"search\"}, {\"arguments\": {}, \"name\": \"show_patch\"}]",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function_call> {\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}} <function_call> {\"name\": \"show_patch\", \"arguments\": {}}",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];
