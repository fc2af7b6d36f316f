//! Kimi K2: `functions.NAME:INDEX` between tokens, then JSON. The reader of DeepSeek's tokens takes these too.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call, is_tool};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Kimi",
    // Some servers drop the tokens.
    openers: &[(r"(?m:^)[ \t]*functions\.[\w\-]+:\d+\s*\{", read)],
    #[cfg(test)]
    samples: SAMPLES,
};

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let name = name_in(opened.text[opened.start..opened.body].trim_end_matches('{'));
    if !is_tool(scan, name) {
        return opened.nothing();
    }
    headed_call(scan, opened.text, opened.start, name_in, &["<|im_end|>"])
        .unwrap_or_else(|| opened.nothing())
}

fn name_in(header: &str) -> &str {
    header.trim()
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{\"pattern\": \"def total\"}<|tool_call_end|><|tool_calls_section_end|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{\"pattern\": \"a\"}<|tool_call_end|><|tool_call_begin|>functions.show_patch:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "functions.search:0{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];
