//! Finds blocks of a text that may contain a call, and their ends.

use std::sync::LazyLock;

use regex::Regex;

/// The start of a block that may contain calls.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// A fence from ``` to ```; `body` is the start of the line after the opening one.
    Fence {
        info: String,
        body: usize,
    },
    Tag {
        name: String,
        body: usize,
    },
    /// A tag such as `<function=name>`.
    Function {
        name: String,
        body: usize,
    },
    /// A marker such as `[TOOL_CALLS]`, which has no closing marker.
    Marker {
        body: usize,
    },
    /// A `{` or `[` at the start of a line.
    Bracket,
    Thought {
        end: usize,
    },
    /// A tool result that the model invented.
    InventedAnswer,
}

#[allow(clippy::expect_used)] // constant patterns, compiled by a test
static OPENER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?m)(?:^[ \t]*(?P<fence>```+|~~~+)(?P<info>[^\n`]*)(?:\n|\z))",
        r"|(?P<think><(?:think|thinking|reasoning)>)",
        r"|<(?P<tag>tool_calls?|tools|function_calls?|tool_use|tool)>",
        r#"|<(?:function|invoke|tool_call)(?:=|\s+name=)"?(?P<function>[\w.\-]+)"?\s*>"#,
        r"|(?P<marker>\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>)",
        r"|(?P<answer><tool_response>|<tool_result>)",
        r"|^[ \t]*(?P<bracket>[\{\[])",
    ))
    .expect("the pattern of openers")
});

#[allow(clippy::expect_used)] // constant patterns, compiled by a test
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"<(?:parameter|param|arg)(?:=|\s+name=)"?([\w.\-]+)"?[^>\n]*>"#)
        .expect("the pattern of parameters")
});

#[allow(clippy::expect_used)] // constant patterns, compiled by a test
static ARG_PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>")
        .expect("the pattern of argument pairs")
});

/// Returns the first opener at or after `at`.
pub(super) fn next(text: &str, at: usize) -> Option<(usize, Block)> {
    let mut from = at;
    loop {
        let found = OPENER.captures_at(text, from)?;
        let all = found.get(0)?;
        // A `<tool_call>` in backquotes only mentions calls.
        let quoted = text[..all.start()].ends_with('`') && !all.as_str().contains("```");
        if quoted {
            from = all.end();
            continue;
        }
        let body = all.end();
        if let Some(fence) = found.name("fence") {
            let info = found.name("info").map_or("", |m| m.as_str()).trim();
            let info = info.split_whitespace().next().unwrap_or("");
            return Some((
                fence.start(),
                Block::Fence {
                    info: info.to_lowercase(),
                    body,
                },
            ));
        }
        if let Some(think) = found.name("think") {
            let close = think.as_str().replacen('<', "</", 1);
            let end = text[body..]
                .find(&close)
                .map_or(text.len(), |i| body + i + close.len());
            return Some((think.start(), Block::Thought { end }));
        }
        if let Some(tag) = found.name("tag") {
            let name = tag.as_str().to_owned();
            return Some((all.start(), Block::Tag { name, body }));
        }
        if let Some(function) = found.name("function") {
            let name = function.as_str().to_owned();
            return Some((all.start(), Block::Function { name, body }));
        }
        if found.name("marker").is_some() {
            return Some((all.start(), Block::Marker { body }));
        }
        if found.name("answer").is_some() {
            return Some((all.start(), Block::InventedAnswer));
        }
        return found.name("bracket").map(|m| (m.start(), Block::Bracket));
    }
}

/// Returns the end of the fence's body, and the end of its closing line.
pub(super) fn fence_end(text: &str, body: usize) -> (usize, usize) {
    let mut at = body;
    for line in text[body..].split_inclusive('\n') {
        let lead = line.trim();
        if lead.starts_with("```") || lead.starts_with("~~~") {
            let lead_at = at + (line.len() - line.trim_start().len());
            return (at, lead_at + lead.len());
        }
        at += line.len();
    }
    (text.len(), text.len())
}

/// Returns the end of a tag's body, the end of the tag, and whether it was closed.
pub(super) fn tag_end(text: &str, tag: &str, body: usize) -> (usize, usize, bool) {
    let rest = &text[body..];
    let close = format!("</{tag}>");
    let again = format!("<{tag}>");
    let closed = rest.find(&close);
    let reopened = rest.find(&again);
    match (closed, reopened) {
        (Some(c), r) if r.is_none_or(|r| c < r) => (body + c, body + c + close.len(), true),
        (_, Some(r)) => (body + r, body + r, false),
        _ => (text.len(), text.len(), false),
    }
}

/// Returns the end of the body of `<function=…>`, the end of the tag, and whether it was closed.
pub(super) fn function_end(text: &str, body: usize) -> (usize, usize, bool) {
    let rest = &text[body..];
    let closes = ["</function>", "</invoke>", "</tool_call>"];
    let closed = closes
        .iter()
        .filter_map(|c| rest.find(c).map(|i| (i, c.len())))
        .min();
    let reopened = ["<function=", "<invoke name="]
        .iter()
        .filter_map(|o| rest.find(o))
        .min();
    match (closed, reopened) {
        (Some((c, n)), r) if r.is_none_or(|r| c < r) => (body + c, body + c + n, true),
        (_, Some(r)) => (body + r, body + r, false),
        _ => (text.len(), text.len(), false),
    }
}

/// Returns the names and texts of `<parameter=name>text</parameter>`.
pub(super) fn parameters(inner: &str) -> Vec<(String, String)> {
    let openers: Vec<_> = PARAMETER.captures_iter(inner).collect();
    let mut found = Vec::new();
    for (i, opener) in openers.iter().enumerate() {
        let (Some(all), Some(name)) = (opener.get(0), opener.get(1)) else {
            continue;
        };
        let limit = openers
            .get(i + 1)
            .and_then(|next| next.get(0))
            .map_or(inner.len(), |next| next.start());
        let value = &inner[all.end()..limit];
        let value = ["</parameter>", "</param>", "</arg>"]
            .iter()
            .find_map(|close| value.rfind(close).map(|at| &value[..at]))
            .unwrap_or(value);
        found.push((name.as_str().to_owned(), unwrap_lines(value)));
    }
    found
}

pub(super) fn arg_pairs(inner: &str) -> Vec<(String, String)> {
    ARG_PAIR
        .captures_iter(inner)
        .map(|c| (c[1].trim().to_owned(), unwrap_lines(&c[2])))
        .collect()
}

/// Removes the newlines that only separate a value from its tags.
fn unwrap_lines(value: &str) -> String {
    let value = value
        .strip_prefix("\r\n")
        .or_else(|| value.strip_prefix('\n'))
        .unwrap_or(value);
    let value = value
        .strip_suffix("\r\n")
        .or_else(|| value.strip_suffix('\n'))
        .unwrap_or(value);
    value.to_owned()
}
