//! Marks of chat templates: special tokens that servers leave in texts, names and arguments.

use std::borrow::Cow;

use testwright_sandboxes::Pattern;

static MARK: Pattern = Pattern::new(concat!(
    r#"<\|(?:open|close)\|>\w+<\|sep\|>|\]<\]minimax\[>\[|</?[|｜][^<>|｜\s"]{1,40}[|｜]>|<\|?/?tool_call\|?>|<tool_call\|>|</s>|<eos>"#,
    r"|<(?:end_of_turn|end_function_call|escape)>|\[/?(?:END_)?TOOL_(?:CALLS?|REQUEST)\]|\[/ARGS\]",
    r"|</?(?:minimax|seed|mm|antml|longcat|step)[:_](?:tool_calls?|function_calls?)>",
    r"|</?(?:tool_calls?(?::opensource)?|TOOL_CALLS?|function_calls?|tool_code|TOOLCALL)>|</(?:function|invoke|call_tool)>|</?functions?>|✿RESULT✿:?|✿RETURN✿:?",
    // Code may contain these, so only those at the end are marks.
    r"|</(?:parameters?|arguments?)>(?:\s*</\w+>)*\s*\z",
));

/// Returns a text without the marks of chat templates.
pub(super) fn without_marks(text: &str) -> Cow<'_, str> {
    MARK.replace_all(text, "")
}

/// Characters that HTML escapes.
const ESCAPES: [(&str, &str); 6] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&amp;", "&"),
];

/// Returns a text without HTML's escapes; `None` if it has none around tags or strings.
pub(super) fn without_escapes(text: &str) -> Option<String> {
    let is_escaped = ESCAPES[..4]
        .iter()
        .any(|(escape, _)| text.contains(*escape));
    is_escaped.then(|| {
        let replace = |text: String, (escape, plain): &(&str, &str)| text.replace(*escape, plain);
        ESCAPES.iter().fold(text.to_owned(), replace)
    })
}

/// Returns a JSON text without marks, a fence and the name of its format.
pub(super) fn without_dressing(text: &str) -> Cow<'_, str> {
    let plain = without_marks(text);
    let mut bare = plain.trim();
    for opener in ["```json", "```", "json"] {
        bare = bare.strip_prefix(opener).unwrap_or(bare).trim_start();
    }
    bare = bare.strip_suffix("```").unwrap_or(bare).trim_end();
    match bare == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(bare.to_owned()),
    }
}

/// Skips white space and any of `closers`, and returns the offset after them.
pub(super) fn skip(text: &str, at: usize, closers: &[&str]) -> usize {
    let mut rest = &text[at..];
    loop {
        let lead = rest.trim_start();
        let next = closers.iter().find_map(|closer| lead.strip_prefix(closer));
        match next {
            Some(after) => rest = after,
            None => return text.len() - rest.len(),
        }
    }
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
