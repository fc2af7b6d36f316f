//! DeepSeek V3 and R1 (a fence after `function` and the name), V3.1 (the name and JSON), and V3.2 (tags with
//! the prefix `｜DSML｜`). Kimi's tokens equal these once a server has replaced their unusual characters, so
//! this reader takes both.

use testwright_tools::Pattern;

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call};
use crate::text_calls::parse_call::ParsedCall;
use crate::text_calls::{self, Scan};

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "DeepSeek",
    openers: &[
        (r"<[｜|]tool(?:[▁_ ]|\\_)call(?:[▁_ ]|\\_)begin[｜|]>", read),
        // Distilled models leave out the token before a call.
        (
            r"[A-Za-z_][\w.\-]*<[｜|]tool(?:[▁_ ]|\\_)sep[｜|]>",
            read_from_name,
        ),
        (
            r"<\s*[｜|]\s*DSML\s*[｜|]\s*(?:function_calls>|tool_calls>|invoke\s)",
            read_dsml,
        ),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 7] = [
    "```",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜end▁of▁sentence｜>",
    "<|tool_call_end|>",
    "<|tool_calls_end|>",
    "<|tool_calls_section_end|>",
];

/// Words of a header that are not the name.
const HEADER_WORDS: [&str; 7] = [
    "",
    "json",
    "tool▁sep",
    "tool_sep",
    "tool sep",
    "tool\\_sep",
    "tool_call_argument_begin",
];

/// The prefix of a tag, however often it is repeated. Otherwise, a tag with a prefix would be left to read.
static DSML: Pattern = Pattern::new(r"<(/?)(?:\s*[｜|]\s*DSML\s*[｜|])+\s*");

static DSML_END: Pattern = Pattern::new(r"</\s*[｜|]\s*DSML\s*[｜|]\s*(?:function|tool)_calls>");

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    headed_call(scan, opened.text, opened.body, name_in, &CLOSERS)
        .unwrap_or_else(|| opened.nothing())
}

fn read_from_name(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    headed_call(scan, opened.text, opened.start, name_in, &CLOSERS)
        .unwrap_or_else(|| opened.nothing())
}

/// Returns the last word of a header such as `function<｜tool▁sep｜>search` or `search<｜tool▁sep｜>`.
fn name_in(header: &str) -> &str {
    header
        .split(['<', '>', '｜', '|', '\n', '`'])
        .map(str::trim)
        .rfind(|word| !HEADER_WORDS.contains(word))
        .unwrap_or_default()
}

fn read_dsml(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let text = &opened.text[opened.start..];
    let end = DSML_END.find(text).map_or(text.len(), |end| end.end());
    let plain = DSML.replace_all(&text[..end], "<$1");
    let pieces = text_calls::read(&plain, scan.tools, scan.whole).into_pieces();
    (opened.start + end, pieces)
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"def total\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Two at once.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"a\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>show_patch\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{\"pattern\": \"def total\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|tool_calls_begin|><|tool_call_begin|>search<|tool_sep|>{\"pattern\": \"x\", \"limit\": 3}<|tool_call_end|><|tool_calls_end|>",
        calls: &[("search", r#"{"pattern":"x","limit":3}"#)],
    },
    Sample {
        text: "<｜tool▁calls｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"x\"}\n```<｜tool▁call▁end｜>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<｜tool\\_calls\\_begin｜><｜tool\\_call\\_begin｜>function<｜tool\\_sep｜>search\n```json\n{\"pattern\": \"x\"}\n```<｜tool\\_call\\_end｜>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "< | DSML | function_calls>\n< | DSML | invoke name=\"search\">\n< | DSML | parameter name=\"pattern\" string=\"true\">x</ | DSML | parameter>\n</ | DSML | invoke>\n</ | DSML | function_calls>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"search\">\n<｜DSML｜parameter name=\"pattern\" string=\"true\">def total</｜DSML｜parameter>\n<｜DSML｜parameter name=\"limit\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"show_patch\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        calls: &[
            ("search", r#"{"pattern":"def total","limit":5}"#),
            ("show_patch", "{}"),
        ],
    },
];
