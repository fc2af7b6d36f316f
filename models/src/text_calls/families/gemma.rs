//! Gemma 3 (Python in a `tool_code` fence), FunctionGemma and Gemma 4 (`call:NAME{key:value}` with tokens as
//! quotes).

use super::{Calls, Opened, Opener, named_object, python_calls};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;

pub(super) const OPENERS: &[Opener] = &[
    (
        r"(?:<start_function_call>|<\|tool_call>)\s*(?:call:)?",
        read,
    ),
    // Gemini's own forms, which its service sometimes leaves in the text.
    (r"(?m:^)[ \t]*call:[\w.:\-]+\{", read_bare),
    (r"(?m:^)tool_code[ \t]*\n", read_code),
];

const CLOSERS: [&str; 5] = [
    "<end_function_call>",
    "<tool_call|>",
    "<start_function_response>",
    "<|tool_response>",
    "<end_of_turn>",
];

/// Tokens around strings.
const QUOTES: [&str; 2] = ["<escape>", "<|\"|>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let text = opened.text;
    let brace = opened.body + opened.rest().find('{')?;
    let name = text[opened.body..brace].trim();
    let (json, end) = as_json(text, brace);
    let call = scan.json_call(name, &json);
    Some((skip(text, end, &CLOSERS), vec![call]))
}

fn read_bare(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let brace = opened.body - 1;
    let header = &opened.text[opened.start..brace];
    let name = header.split_once("call:").map_or("", |(_, name)| name);
    if !scan.has_tool(name) {
        return None;
    }
    let (end, call) = named_object(scan, opened.text, brace, name);
    Some((end, vec![call]))
}

fn read_code(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let is_call = scan.is_python_call(opened.rest());
    let calls = is_call.then(|| python_calls(scan, opened.text, opened.body, &CLOSERS));
    calls.flatten()
}

/// Rewrites an object with tokens as quotes to JSON, and returns it with the offset after the object.
fn as_json(text: &str, start: usize) -> (String, usize) {
    let mut json = String::new();
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(quote) = QUOTES.iter().find(|quote| rest.starts_with(**quote)) {
            let inner = &rest[quote.len()..];
            let Some(end) = inner.find(quote) else {
                // The string has no end, which the reader of JSON reports.
                json.push('"');
                return (json, text.len());
            };
            json.push_str(&serde_json::Value::from(&inner[..end]).to_string());
            at += 2 * quote.len() + end;
            continue;
        }
        json.push(next);
        at += next.len_utf8();
        match next {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    (json, at)
}
