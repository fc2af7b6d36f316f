//! Kimi K2: `functions.NAME:INDEX` between tokens, then JSON. The reader of DeepSeek's tokens takes these too.

use super::{Calls, Opened, Opener, headed_call, is_tool};
use crate::text_calls::Scan;

// Some servers drop the tokens.
pub(super) const OPENERS: &[Opener] = &[(
    r"(?m:^)[ \t]*functions\.[\w\-]+:\d+\s*(?:<\|tool_call_argument_begin\|>)?\s*\{",
    read,
)];

const CLOSERS: [&str; 3] = [
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<|im_end|>",
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let name = name_in(opened.text[opened.start..opened.body].trim_end_matches('{'));
    if !is_tool(scan, name) {
        return None;
    }
    headed_call(scan, opened.text, opened.start, name_in, &CLOSERS)
}

fn name_in(header: &str) -> &str {
    header.trim()
}
