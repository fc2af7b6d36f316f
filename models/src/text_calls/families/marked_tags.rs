//! Tags with marks of their own: MiniMax M3 (`]<]minimax[>[<invoke name="NAME">`), Hunyuan 3
//! (`<tool_call:opensource>NAME`) and Kimi K3 (`<|open|>call tool="NAME"<|sep|>`).

use testwright_sandboxes::Pattern;

use super::{Calls, Opened, Opener};
use crate::text_calls::{self, Scan};

pub(super) const OPENERS: &[Opener] = &[(
    r"\]<\]minimax\[>\[\s*<(?:tool_call>|invoke\s)|<tool_call:opensource>|<\|open\|>call tool=",
    read,
)];

static END: Pattern =
    Pattern::new(r"<(?:/|end_of_)tool_call(?::opensource)?>|<\|close\|>call<\|sep\|>");

/// Marks, with the common form of each.
const MARKS: [(&str, &str); 10] = [
    ("]<]minimax[>[", ""),
    ("<end_of_tool_call:opensource>", "</tool_call>"),
    (":opensource>", ">"),
    ("<|open|>call tool=", "<invoke name="),
    ("<|close|>call<|sep|>", "</invoke>"),
    ("<|open|>argument key=", "<parameter name="),
    ("<|close|>argument<|sep|>", "</parameter>"),
    ("<|open|>json type=\"object\"<|sep|>", ""),
    ("<|close|>json<|sep|>", ""),
    ("<|sep|>", ">"),
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let text = &opened.text[opened.start..];
    let end = END.find(text).map_or(text.len(), |end| end.end());
    let mut plain = text[..end].to_owned();
    for (mark, common) in MARKS {
        plain = plain.replace(mark, common);
    }
    let pieces = text_calls::read(&plain, scan.tools, scan.whole).into_pieces();
    Some((opened.start + end, pieces))
}
