//! DeepSeek V3 and R1 (a fence after `function` and the name), and V3.1 (the name and JSON). Kimi's tokens
//! equal these once a server has replaced their unusual characters, and Solar's resemble them, so this reader
//! takes all three.

use super::{Opener, headed_call};

pub(super) const OPENERS: &[Opener] = &[
    (
        r"<[｜|]tool(?:[▁_ ]|\\_)call(?:[▁_: ]|\\_)begin[｜|]>",
        |scan, opened| headed_call(scan, opened.text, opened.body, name_in, &CLOSERS),
    ),
    // Distilled models leave out the token before a call.
    (
        r"[A-Za-z_][\w.\-]*<[｜|]tool(?:[▁_ ]|\\_)sep[｜|]>",
        |scan, opened| headed_call(scan, opened.text, opened.start, name_in, &CLOSERS),
    ),
];

const CLOSERS: [&str; 9] = [
    "```",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜end▁of▁sentence｜>",
    "<|tool_call_end|>",
    "<|tool_call:end|>",
    "<|calls|>",
    "<|tool_calls_end|>",
    "<|tool_calls_section_end|>",
];

/// Words of a header that are not the name.
const HEADER_WORDS: [&str; 8] = [
    "",
    "json",
    "tool▁sep",
    "tool_sep",
    "tool sep",
    "tool\\_sep",
    "tool_call_argument_begin",
    "tool_call:args",
];

/// Returns the last word of a header such as `function<｜tool▁sep｜>search` or `search<｜tool▁sep｜>`.
fn name_in(header: &str) -> &str {
    header
        .split(['<', '>', '｜', '|', '\n', '`'])
        .map(str::trim)
        .rfind(|word| !HEADER_WORDS.contains(word))
        .unwrap_or_default()
}
