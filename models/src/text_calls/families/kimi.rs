//! Kimi K2: `functions.NAME:INDEX` between tokens, then JSON. The reader of DeepSeek's tokens takes these too.

use super::{Calls, Opened, Opener, tool_call};
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
    tool_call(scan, opened.text, opened.start, str::trim, &CLOSERS)
}
