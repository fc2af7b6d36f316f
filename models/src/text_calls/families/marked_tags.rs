//! Tags with marks of their own: DeepSeek V3.2 (`<｜DSML｜invoke name="NAME">`), MiniMax M3
//! (`]<]minimax[>[<invoke name="NAME">`), Hunyuan 3 (`<tool_call:opensource>NAME`) and Kimi K3
//! (`<|open|>call tool="NAME"<|sep|>`).

use testwright_sandboxes::Pattern;

use super::{Calls, Opened, Opener};
use crate::text_calls::{self, Scan};

pub(super) const OPENERS: &[Opener] = &[
    (
        r"<\s*[｜|]*\s*DSML\s*[｜|]*\s*(?:function_calls>|tool_calls>|invoke\s)",
        |scan, opened| read_until(&DSML_END, scan, opened),
    ),
    (
        r"\]<\]minimax\[>\[\s*<(?:tool_call>|invoke\s)|<tool_call:opensource>|<\|open\|>call tool=",
        |scan, opened| read_until(&END, scan, opened),
    ),
];

static DSML: Pattern = Pattern::new(r"<(/?)(?:\s*[｜|]*\s*DSML\s*[｜|]*)+\s*");

static DSML_END: Pattern = Pattern::new(r"</\s*[｜|]*\s*DSML\s*[｜|]*\s*(?:function|tool)_calls>");

static END: Pattern =
    Pattern::new(r"<(?:/|end_of_)tool_call(?::opensource)?>|<\|close\|>call<\|sep\|>");

/// Marks besides DSML, with the common form of each.
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

/// Maximum number of marks inside of each other. Each would make the reader of calls call itself.
const MAX_NESTED: usize = 8;

fn read_until(end: &Pattern, scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let text = &opened.text[opened.start..];
    let end = end.find(text).map_or(text.len(), |end| end.end());
    let plain = with_common_tags(&text[..end]);
    let text_calls = plain.map(|plain| text_calls::read_plain(&plain, scan.tools, scan.whole));
    let pieces = text_calls.map_or(Vec::new(), |text_calls| text_calls.into_pieces());
    Some((opened.start + end, pieces))
}

/// Replaces all marks; `None` if they are nested too deeply.
fn with_common_tags(text: &str) -> Option<String> {
    let mut plain = text.to_owned();
    for _ in 0..MAX_NESTED {
        let before = plain.len();
        plain = DSML.replace_all(&plain, "<$1").into_owned();
        for (mark, common) in MARKS {
            plain = plain.replace(mark, common);
        }
        // Each replacement is shorter than its mark.
        if plain.len() == before {
            return Some(plain);
        }
    }
    None
}
