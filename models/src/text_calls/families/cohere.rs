//! Command R and A: a list of JSON objects with `tool_name` and `parameters`, as an action.

use super::{Calls, Opened, Opener, json_calls};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[
    (r"<\|START_ACTION\|>|<\|tools_prefix\|>", read),
    (r"<\|START_THINKING\|>", read_thought),
];

const CLOSERS: [&str; 3] = [
    "<|END_ACTION|>",
    "<|tools_suffix|>",
    "<|END_OF_TURN_TOKEN|>",
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    json_calls(scan, opened.text, opened.body, &CLOSERS)
}

fn read_thought(_: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let end = opened.rest().find("<|END_THINKING|>");
    let end = end.map_or(opened.text.len(), |end| opened.body + end);
    Some((end, Vec::new()))
}
