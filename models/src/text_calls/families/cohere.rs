//! Command R and A: a list of JSON objects with `tool_name` and `parameters`, as an action.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, json_calls};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Command",
    openers: &[
        (r"<\|START_ACTION\|>|<\|tools_prefix\|>", read),
        (r"<\|START_THINKING\|>", read_thought),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 3] = [
    "<|END_ACTION|>",
    "<|tools_suffix|>",
    "<|END_OF_TURN_TOKEN|>",
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    json_calls(scan, opened.text, opened.body, &CLOSERS).unwrap_or_else(|| opened.nothing())
}

fn read_thought(_: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let end = opened.rest().find("<|END_THINKING|>");
    let end = end.map_or(opened.text.len(), |end| opened.body + end);
    (end, Vec::new())
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<|START_THINKING|>I will look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"search\", \"parameters\": {\"pattern\": \"def total\"}}\n]<|END_ACTION|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Action: ```json\n[\n    {\n        \"tool_name\": \"search\",\n        \"parameters\": {\n            \"pattern\": \"def total\"\n        }\n    }\n]\n```",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    // Apertus names each tool by a key.
    Sample {
        text: "<|tools_prefix|>[{\"search\": {\"pattern\": \"a\"}}, {\"show_patch\": {}}]<|tools_suffix|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];
