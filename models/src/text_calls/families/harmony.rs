//! gpt-oss: messages in channels, with the tool as the recipient of a message.

use testwright_sandboxes::Pattern;

use super::{Calls, Opened, Opener, headed_call};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[
    (
        r"(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?(?:assistant)?(?:commentary|analysis)?[ \t]*\bto=functions\.",
        read,
    ),
    (
        r"(?:<\|channel\|>|\bassistant|(?m:^))(?:commentary|analysis)[ \t]+to=|<\|start\|>assistant[ \t]+to=",
        read,
    ),
    (
        // Solar and Command have similar tokens.
        r"(?:<\|start\|>assistant)?<\|channel\|>analysis|<\|think\|>|<\|START_THINKING\|>",
        read_thought,
    ),
];

const CLOSERS: [&str; 3] = ["<|call|>", "<|end|>", "<|return|>"];

static RECIPIENT: Pattern = Pattern::new(r"to=([\w.\-]+)");

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let text = opened.text;
    if let Some(call) = headed_call(scan, text, opened.start, recipient, &CLOSERS) {
        return Some(call);
    }
    // A call without arguments.
    let name = recipient(&text[opened.start..]);
    if !scan.whole || !scan.has_tool(name) {
        return None;
    }
    let call = scan.text_call(name, &[]);
    let end = text[opened.body..].find('\n');
    let end = end.map_or(text.len(), |end| opened.body + end);
    Some((end, vec![call]))
}

fn recipient(header: &str) -> &str {
    let group = RECIPIENT
        .captures(header)
        .and_then(|captures| captures.get(1));
    group.map_or("", |name| name.as_str())
}

fn read_thought(_: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let rest = opened.rest();
    let ends = ["<|end|>", "<|start|>", "<|channel|>", "<|END_THINKING|>"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min();
    Some((opened.body + end.unwrap_or(rest.len()), Vec::new()))
}
