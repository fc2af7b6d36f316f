//! Nemotron (`<TOOLCALL>`), InternLM (`<|action_start|>`), LongCat and OLMo: JSON or Python between tokens.

use super::{Calls, Opened, Opener, json_or_python_calls};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;

pub(super) const OPENERS: &[Opener] = &[(
    r"<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>|<longcat_tool_call>",
    read,
)];

const CLOSERS: [&str; 3] = ["</TOOLCALL>", "<|action_end|>", "</longcat_tool_call>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    json_or_python_calls(scan, opened, &CLOSERS).or_else(|| read_pairs(scan, opened))
}

/// Reads a call of LongCat with pairs of tags, which are those of GLM with a prefix.
fn read_pairs(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let rest = opened.rest();
    let end = rest.find("</longcat_tool_call>")?;
    let inner = rest[..end].replace("longcat_", "");
    let end = skip(opened.text, opened.body + end, &CLOSERS);
    Some((end, vec![scan.named(&inner)]))
}
