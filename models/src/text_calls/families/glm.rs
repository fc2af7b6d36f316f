//! GLM 4.5 and later: the name and pairs of tags in `<tool_call>`. GLM 4: the name on a line, then JSON.

use super::{Calls, Opened, Opener, headed_call, tool_call};
use crate::text_calls::{Scan, marks};

pub(super) const OPENERS: &[Opener] = &[
    // The server dropped `<tool_call>`, which is a special token.
    (r"(?m:^)[ \t]*[A-Za-z_][\w.\-]*\s*<arg_key>", read_pairs),
    (
        r"(?:(?m:^)[ \t>]*|>>>)[A-Za-z_][\w.\-]*[ \t]*\n[ \t]*(?:```(?:json)?[ \t]*\n\s*)?\{",
        read_line,
    ),
    // Functionary v2.
    (
        r"<\|recipient\|>[ \t]*[A-Za-z_][0-9A-Za-z_.\-]*\s*<\|content\|>\s*\{",
        |scan, opened| headed_call(scan, opened.text, opened.start, recipient, &["<|stop|>"]),
    ),
];

fn read_pairs(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let text = opened.text;
    let (inner_end, end, closed) = marks::tag_end(text, "tool_call", opened.start);
    let inner = &text[opened.start..inner_end];
    let call = match closed || scan.whole {
        true => scan.named_call(inner),
        false => scan.cut_call(inner),
    };
    Some((end, vec![call]))
}

fn read_line(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let closers = ["```", "<|observation|>"];
    tool_call(scan, opened.text, opened.start, first_line, &closers)
}

fn recipient(header: &str) -> &str {
    let name = header.strip_prefix("<|recipient|>").unwrap_or_default();
    name.split('<').next().unwrap_or_default().trim()
}

/// Returns the name, without the mark that Functionary writes before it.
fn first_line(header: &str) -> &str {
    let line = header.lines().next().unwrap_or_default();
    line.trim_matches([' ', '\t', '>'])
}
