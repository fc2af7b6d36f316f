//! Kimi K2: `functions.NAME:INDEX` between tokens, then JSON. The reader of DeepSeek's tokens takes these too.

use super::{Opener, tool_call};

// Some servers drop the tokens.
pub(super) const OPENERS: &[Opener] = &[(
    r"(?m:^)[ \t]*functions\.[\w\-]+:\d+\s*(?:<\|tool_call_argument_begin\|>)?\s*\{",
    |scan, opened| tool_call(scan, opened.text, opened.start, str::trim, &CLOSERS),
)];

const CLOSERS: [&str; 3] = [
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<|im_end|>",
];
