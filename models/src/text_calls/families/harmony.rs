//! gpt-oss: messages in channels, with the tool as the recipient of a message.

use testwright_tools::Pattern;

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::{self, ParsedCall};

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "gpt-oss",
    openers: &[
        (
            r"(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?(?:assistant)?(?:commentary|analysis)?[ \t]*\bto=functions\.",
            read,
        ),
        (
            r"(?:<\|channel\|>|\bassistant|(?m:^))(?:commentary|analysis)[ \t]+to=|<\|start\|>assistant[ \t]+to=",
            read,
        ),
        (
            r"(?:<\|start\|>assistant)?<\|channel\|>analysis",
            read_thought,
        ),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 3] = ["<|call|>", "<|end|>", "<|return|>"];

static RECIPIENT: Pattern = Pattern::new(r"to=([\w.\-]+)");

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let text = opened.text;
    if let Some(call) = headed_call(scan, text, opened.start, recipient, &CLOSERS) {
        return call;
    }
    // A call without arguments.
    let name = recipient(&text[opened.start..]);
    match parse_call::tool_name(name, scan.tools) {
        Ok(_) if scan.whole => {
            let call = parse_call::from_text(name, &[], scan.tools);
            let end = text[opened.body..].find('\n');
            (end.map_or(text.len(), |end| opened.body + end), vec![call])
        }
        _ => opened.nothing(),
    }
}

fn recipient(header: &str) -> &str {
    let group = RECIPIENT
        .captures(header)
        .and_then(|captures| captures.get(1));
    group.map_or("", |name| name.as_str())
}

fn read_thought(_: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let rest = opened.rest();
    let ends = ["<|end|>", "<|start|>", "<|channel|>"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min();
    (opened.body + end.unwrap_or(rest.len()), Vec::new())
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"pattern\": \"def total\"}<|call|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|channel|>analysis<|message|>I could call to=functions.show_patch {} first.<|end|><|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"pattern\":\"x\"}<|call|>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|start|>assistant to=functions.search<|channel|>commentary json<|message|>{\"pattern\": \"x\"}<|call|>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "We look first.assistantcommentary to=functions.search json{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|channel|>commentary to=search <|constrain|>json<|message|>{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "We look first.assistantcommentary to=search json{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|message|>{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}<|call|>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|channel|>commentary to=functions.show_patch<|message|>",
        calls: &[("show_patch", "{}")],
    },
];
