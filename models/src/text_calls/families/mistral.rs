//! Mistral: a list of JSON objects after `[TOOL_CALLS]`, or the name, `[ARGS]` and JSON.

use super::{Calls, Opened, Opener, headed_call, json_calls, tool_call};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const OPENERS: &[Opener] = &[
    (r"\[TOOL_CALLS?\]", read),
    // The server dropped the token before the name, or all tokens.
    (r"[A-Za-z_][\w.\-]*(?:\[CALL_ID\]\w+)?\[ARGS\]", read_bare),
    (r#"(?m:^)[ \t]*[A-Za-z_][\w.\-]*[ \t]*\{""#, read_bare),
];

const CLOSERS: [&str; 2] = ["[/TOOL_CALLS]", "</s>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let text = opened.text;
    if let Some(calls) = json_calls(scan, text, opened.body, &CLOSERS) {
        return Some(calls);
    }
    let (mut end, mut calls) = headed_call(scan, text, opened.body, name_in, &CLOSERS)?;
    // Further calls may follow without a token of their own.
    while calls.iter().all(ParsedCall::is_call) {
        let at = skip(text, end, &[","]);
        let name = name_in(text[at..].split('{').next().unwrap_or_default());
        if name.contains(char::is_whitespace) || !scan.has_tool(name) {
            break;
        }
        let Some((next, mut more)) = headed_call(scan, text, at, name_in, &CLOSERS) else {
            break;
        };
        end = next;
        calls.append(&mut more);
    }
    Some((end, calls))
}

fn read_bare(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    tool_call(scan, opened.text, opened.start, name_in, &CLOSERS)
}

fn name_in(header: &str) -> &str {
    header.split('[').next().unwrap_or_default().trim()
}
