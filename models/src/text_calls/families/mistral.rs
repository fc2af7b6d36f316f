//! Mistral: a list of JSON objects after `[TOOL_CALLS]`, or the name, `[ARGS]` and JSON.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call, is_tool, json_calls};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Mistral",
    openers: &[
        (r"\[TOOL_CALLS\]", read),
        // The server dropped the token before the name, or all tokens.
        (
            r"(?m:^)[ \t]*[A-Za-z_][\w.\-]*(?:\[CALL_ID\]\w+)?\[ARGS\]",
            read_bare,
        ),
        (r#"(?m:^)[ \t]*[A-Za-z_][\w.\-]*[ \t]*\{""#, read_bare),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 2] = ["[/TOOL_CALLS]", "</s>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let text = opened.text;
    if let Some(calls) = json_calls(scan, text, opened.body, &CLOSERS) {
        return calls;
    }
    let Some((mut end, mut calls)) = headed_call(scan, text, opened.body, name_in, &CLOSERS) else {
        return opened.nothing();
    };
    // Further calls may follow without a token of their own.
    while calls
        .iter()
        .all(|call| matches!(call, ParsedCall::Call { .. }))
    {
        let at = skip(text, end, &[","]);
        let name = name_in(text[at..].split('{').next().unwrap_or_default());
        if name.contains(char::is_whitespace) || !is_tool(scan, name) {
            break;
        }
        let Some((next, mut more)) = headed_call(scan, text, at, name_in, &CLOSERS) else {
            break;
        };
        end = next;
        calls.append(&mut more);
    }
    (end, calls)
}

fn read_bare(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let header = &opened.text[opened.start..opened.body];
    if !is_tool(scan, name_in(header.trim_end_matches(['{', '"']))) {
        return opened.nothing();
    }
    headed_call(scan, opened.text, opened.start, name_in, &CLOSERS)
        .unwrap_or_else(|| opened.nothing())
}

fn name_in(header: &str) -> &str {
    header.split('[').next().unwrap_or_default().trim()
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "[TOOL_CALLS] [{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}, \"id\": \"VvvODy9mT\"}]</s>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Two.[TOOL_CALLS][{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}, {\"name\": \"show_patch\", \"arguments\": {}}]",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "[TOOL_CALLS]search[ARGS]{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "[TOOL_CALLS]search[CALL_ID]bbc5b7ede[ARGS]{\"pattern\": \"a\"}[TOOL_CALLS]show_patch[CALL_ID]bbc5b7edf[ARGS]{}</s>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "[TOOL_CALLS]search{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "[THINK]It may be [TOOL_CALLS]show_patch{}[/THINK]Now.[TOOL_CALLS]search{\"pattern\": \"a\"}show_patch{}",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "search{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];
