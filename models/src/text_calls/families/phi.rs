//! Phi-4-mini: a list of JSON objects after `functools`, or between `<|tool_call|>` tokens.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, json_calls};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Phi",
    openers: &[(r"\bfunctools\s*\[\s*\{", read)],
    #[cfg(test)]
    samples: SAMPLES,
};

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let opener = &opened.text[opened.start..opened.body];
    let list = opened.start + opener.find('[').unwrap_or_default();
    json_calls(scan, opened.text, list, &["<|end|>"]).unwrap_or_else(|| opened.nothing())
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "functools[{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}]",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|tool_call|>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}, {\"name\": \"show_patch\", \"arguments\": {}}]<|/tool_call|><|end|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"search\", \"parameters\": {\"pattern\": \"a\"}}}]<|/tool_call|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
];
