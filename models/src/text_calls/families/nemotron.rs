//! Nemotron (`<TOOLCALL>`), InternLM (`<|action_start|>`), LongCat and OLMo: JSON or Python between tokens.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, json_or_python_calls};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Nemotron",
    openers: &[(
        r"<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>|<longcat_tool_call>",
        read,
    )],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 3] = ["</TOOLCALL>", "<|action_end|>", "</longcat_tool_call>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    json_or_python_calls(scan, opened, &CLOSERS)
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<TOOLCALL>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}, {\"name\": \"show_patch\", \"arguments\": {}}]</TOOLCALL>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<|action_start|><|plugin|>\n{\"name\": \"search\", \"parameters\": {\"pattern\": \"a\"}}<|action_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<longcat_tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</longcat_tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    // LFM2, and LM Studio's own form.
    Sample {
        text: "I look.<|tool_call_start|>[search(pattern=\"a\")]<|tool_call_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "[TOOL_REQUEST]{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}[END_TOOL_REQUEST]",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<function_calls>\nsearch(pattern=\"a\")\nshow_patch()\n</function_calls>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];
