//! Qwen 2.5 and 3 (JSON in `<tool_call>`), Qwen3-Coder (`<function=…>`), and Qwen-Agent (`✿FUNCTION✿`).

use super::{Calls, Opened, Opener, headed_call, is_tool, python_calls};
use crate::text_calls::{Scan, pythonic};

pub(super) const OPENERS: &[Opener] = &[
    (r"✿FUNCTION✿:?", read),
    // Qwen writes what it has seen in transcripts.
    (r"\[Calling tools?:[ \t]*", read_calling),
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    headed_call(scan, opened.text, opened.body, before_mark, &[])
}

fn read_calling(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let name = pythonic::first_name(opened.rest());
    if name.is_some_and(|name| is_tool(scan, name)) {
        return python_calls(scan, opened.text, opened.body, &["]"]);
    }
    let header = opened.rest().split('{').next().unwrap_or_default();
    if !is_tool(scan, first_word(header)) {
        return None;
    }
    headed_call(scan, opened.text, opened.body, first_word, &["]"])
}

fn first_word(header: &str) -> &str {
    header.split_whitespace().next().unwrap_or_default()
}

fn before_mark(header: &str) -> &str {
    header.split('✿').next().unwrap_or_default().trim()
}
