//! Nemotron (`<TOOLCALL>`), InternLM (`<|action_start|>`), LongCat and OLMo: JSON or Python between tokens.

use super::{Calls, Opened, Opener, json_or_python_calls};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[(
    r"<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>|<longcat_tool_call>",
    read,
)];

const CLOSERS: [&str; 3] = ["</TOOLCALL>", "<|action_end|>", "</longcat_tool_call>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    json_or_python_calls(scan, opened, &CLOSERS)
}
