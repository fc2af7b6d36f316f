//! Granite: a list of JSON objects after `<|tool_call|>` (3.0 to 3.3) or `<tool_call>` (3.1), an object in
//! `<tool_call>` (4), or objects after `<function_call>` (20b-functioncalling).

use super::{Calls, Opened, Opener, json_or_python_calls};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[(r"<\|tool_calls?\|>", read)];

const CLOSERS: [&str; 4] = [
    "<|/tool_call|>",
    "<|/tool_calls|>",
    "<|end|>",
    "<|end_of_text|>",
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    json_or_python_calls(scan, opened, &CLOSERS)
}
