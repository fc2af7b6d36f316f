//! Qwen 2.5 and 3 (JSON in `<tool_call>`), Qwen3-Coder (`<function=…>`), and Qwen-Agent (`✿FUNCTION✿`).

use super::{Calls, Opened, Opener, headed_call, python_calls, tool_call};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[
    (r"✿FUNCTION✿:?", |scan, opened| {
        headed_call(scan, opened.text, opened.body, before_mark, &[])
    }),
    // Qwen writes what it has seen in transcripts.
    (r"\[Calling tools?:[ \t]*", read_calling),
];

fn read_calling(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    if scan.is_python_call(opened.rest()) {
        return python_calls(scan, opened.text, opened.body, &["]"]);
    }
    tool_call(scan, opened.text, opened.body, first_word, &["]"])
}

fn first_word(header: &str) -> &str {
    header.split_whitespace().next().unwrap_or_default()
}

fn before_mark(header: &str) -> &str {
    header.split('✿').next().unwrap_or_default().trim()
}
