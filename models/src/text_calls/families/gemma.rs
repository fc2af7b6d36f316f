//! Gemma 3 (Python in a `tool_code` fence), FunctionGemma and Gemma 4 (`call:NAME{key:value}` with tokens as
//! quotes).

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, is_tool, named_object, python_calls};
use crate::near_json;
use crate::text_calls::marks::skip;
use crate::text_calls::parse_call::{self, ParsedCall};
use crate::text_calls::{Scan, pythonic};

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Gemma",
    openers: &[
        (
            r"(?:<start_function_call>|<\|tool_call>)\s*(?:call:)?",
            read,
        ),
        // Gemini's own forms, which its service sometimes leaves in the text.
        (r"(?m:^)[ \t]*call:[\w.:\-]+\{", read_bare),
        (r"(?m:^)tool_code[ \t]*\n", read_code),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 5] = [
    "<end_function_call>",
    "<tool_call|>",
    "<start_function_response>",
    "<|tool_response>",
    "<end_of_turn>",
];

/// Tokens around strings.
const QUOTES: [&str; 2] = ["<escape>", "<|\"|>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let text = opened.text;
    let Some(brace) = opened.rest().find('{').map(|at| opened.body + at) else {
        return opened.nothing();
    };
    let name = text[opened.body..brace].trim();
    let (json, end) = as_json(text, brace);
    let call = match near_json::read(&json, scan.whole) {
        Ok(value) => parse_call::call(name, value, scan.tools, scan.whole),
        Err(problem) => parse_call::unreadable_arguments(name, &problem),
    };
    (skip(text, end, &CLOSERS), vec![call])
}

fn read_bare(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let brace = opened.body - 1;
    let header = &opened.text[opened.start..brace];
    let name = header.split_once("call:").map_or("", |(_, name)| name);
    if !is_tool(scan, name) {
        return opened.nothing();
    }
    let (end, call) = named_object(scan, opened.text, brace, name);
    (end, vec![call])
}

fn read_code(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let is_call = pythonic::first_name(opened.rest()).is_some_and(|name| is_tool(scan, name));
    let calls = is_call.then(|| python_calls(scan, opened.text, opened.body, &CLOSERS));
    calls.flatten().unwrap_or_else(|| opened.nothing())
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

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "```tool_code\nsearch(pattern=\"def total\")\n```",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "```tool_code\nprint(default_api.search(pattern='a'))\nshow_patch()\n```",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "```json\n{\"name\": \"search\", \"parameters\": {\"pattern\": \"def total\"}}\n```",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_code>\nprint(default_api.search(pattern=\"a\"))\n</tool_code>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "thought\nI look.\n\ntool_code\nprint(default_api.search(pattern=\"a\"))",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "call:default_api:search{pattern:\"a\"}",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<start_function_call>call:search{pattern:<escape>def total<escape>,limit:5}<end_function_call><start_function_response>",
        calls: &[("search", r#"{"pattern":"def total","limit":5}"#)],
    },
    Sample {
        text: "<|tool_call>call:search{pattern:<|\"|>say \"hi\" {<|\"|>}<tool_call|><|tool_call>call:run_pytest{tests:[<|\"|>a<|\"|>,<|\"|>b<|\"|>]}<tool_call|>",
        calls: &[
            ("search", r#"{"pattern":"say \"hi\" {"}"#),
            ("run_pytest", r#"{"tests":["a","b"]}"#),
        ],
    },
];
