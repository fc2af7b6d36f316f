//! Finds blocks of a text that may contain a call, and their ends.

use std::sync::LazyLock;

use regex::Regex;
use testwright_sandboxes::Pattern;

use super::families::{self, ReadBlock};

/// The start of a block that may contain calls.
pub(super) struct Block<'t> {
    pub(super) start: usize,
    /// Offset after the opener.
    pub(super) body: usize,
    pub(super) form: Form<'t>,
}

/// The form of a block.
pub(super) enum Form<'t> {
    /// A fence from ``` to ```, with its language in lower case.
    Fence(String),
    Tag(&'t str),
    /// A tag such as `<function=name>`.
    Function(&'t str),
    /// Any other tag, which may be named after a tool.
    Element(&'t str),
    /// A form that belongs to a family of models.
    Family(ReadBlock),
    /// A `{` or `[` at the start of a line, or after a tag, a token or words that announce a call.
    Bracket,
    /// Reasoning; the body starts after it.
    Thought,
    /// A tool result that the model invented.
    InventedAnswer,
}

/// Tags around reasoning, with the tags that close them.
const THOUGHTS: [(&str, &str); 10] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratch_pad>", "</scratch_pad>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<think:opensource>", "</think:opensource>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("[THINK]", "[/THINK]"),
];

/// Openers that all families share.
const COMMON: &str = concat!(
    r"(?:^[ \t]*(?P<fence>```+|~~~+)(?P<info>[^\n`]*)(?:\n|\z))",
    r"|^[ \t]*Action:[ \t]*(?P<fence2>```+)(?P<info2>[^\n`]*)\n",
    r"|(?P<think><(?:think(?::opensource)?|thinking|thought|reasoning|scratch_pad|(?:seed|mm):think)>|\[THINK\]|<\|open\|>think<\|sep\|>)",
    r"|<(?P<tag>tool_calls?|TOOL_CALLS?|tools|function_calls?|tool_use|tool_code|tool)>",
    r#"|<(?:[a-z]+:)?(?:function|invoke|tool_call|function_call|tool_use|call_tool|call|tool)(?:\s*=\s*|\s+(?:name|function)=)["']?(?P<function>[\w.\-:]+)["']?(?:[ \t]+(?:index|id)=[^<>\n]*)?\s*>"#,
    r"|(?P<answer><tool_response>|<tool_result>|<function_results>)",
    r"|(?:\[TOOL_(?:CALL|REQUEST)\]|>|\bfunction call|^\**(?i:calling|call|using|action|tool|function)[A-Za-z `*]{0,40}:\**|^)[ \t]*(?P<bracket>[\{\[])",
    r"|<(?P<element>[A-Za-z_]\w*)>",
);

/// Pattern of all openers, with a group `f…` for each opener of a family. Those come first, because their
/// tokens begin like common ones. The group `call` leaves out text before a call.
#[allow(clippy::expect_used)] // constant patterns, compiled by a test
static OPENER: LazyLock<Regex> = LazyLock::new(|| {
    let mut pattern = String::from("(?m)");
    for (number, (opener, _)) in families::openers().enumerate() {
        pattern.push_str(&format!("(?P<f{number}>{opener})|"));
    }
    pattern.push_str(COMMON);
    Regex::new(&pattern).expect("the pattern of openers")
});

/// Readers of the families' openers, with the index of each one's group.
static FAMILY_READERS: LazyLock<Vec<(usize, ReadBlock)>> = LazyLock::new(|| {
    let names: Vec<Option<&str>> = OPENER.capture_names().collect();
    let index = |number: usize| {
        let name = format!("f{number}");
        names.iter().position(|group| *group == Some(name.as_str()))
    };
    families::openers()
        .enumerate()
        .filter_map(|(number, (_, read))| Some((index(number)?, read)))
        .collect()
});

static FUNCTION_END: Pattern =
    Pattern::new(r"</(?:[a-z]+:)?(?:function|invoke|tool_call|function_call|call_tool)>");

static FUNCTION_START: Pattern =
    Pattern::new(r"<(?:[a-z]+:)?(?:function\s*=|(?:invoke|function_call|call_tool)\s+name=)");

/// Tags whose names are short words, which may also be in the arguments of other calls.
static SHORT_TAG: Pattern = Pattern::new(r"\A<(?:[a-z]+:)?(?:call|tool|tool_use)[\s=]");

static SHORT_END: Pattern = Pattern::new(r"</(?:[a-z]+:)?(?:call|tool|tool_use)>");

static SHORT_START: Pattern = Pattern::new(r"<(?:[a-z]+:)?(?:call|tool|tool_use)\s+name=");

/// Returns the first opener at or after `at`.
pub(super) fn next(text: &str, at: usize) -> Option<Block<'_>> {
    let mut from = at;
    loop {
        let captures = OPENER.captures_at(text, from)?;
        let all = captures.get(0)?;
        from = all.end();
        // A `<tool_call>` in backquotes only mentions calls.
        if text[..all.start()].ends_with('`') && !all.as_str().contains("```") {
            continue;
        }
        let group = |name: &str| captures.name(name);
        let mut families = FAMILY_READERS.iter();
        let mut body = all.end();
        let (opener, form) =
            if let Some((_, read)) = families.find(|(group, _)| captures.get(*group).is_some()) {
                (group("call").unwrap_or(all), Form::Family(*read))
            } else if let Some(fence) = group("fence").or_else(|| group("fence2")) {
                let info = group("info").or_else(|| group("info2"));
                let mut words = info.map_or("", |m| m.as_str()).split_whitespace();
                (
                    fence,
                    Form::Fence(words.next().unwrap_or("").to_lowercase()),
                )
            } else if let Some(think) = group("think") {
                let mut closers = THOUGHTS.iter();
                let close = closers.find(|(open, _)| *open == think.as_str());
                // The last character of the tag is left to find JSON after it.
                body = close
                    .and_then(|(_, close)| Some(body + text[body..].find(close)? + close.len() - 1))
                    .unwrap_or(text.len());
                (think, Form::Thought)
            } else if let Some(tag) = group("tag") {
                (all, Form::Tag(tag.as_str()))
            } else if let Some(function) = group("function") {
                (all, Form::Function(function.as_str()))
            } else if group("answer").is_some() {
                (all, Form::InventedAnswer)
            } else if let Some(element) = group("element") {
                (all, Form::Element(element.as_str()))
            } else {
                (group("bracket")?, Form::Bracket)
            };
        return Some(Block {
            start: opener.start(),
            body,
            form,
        });
    }
}

/// Returns the end of reasoning at the start of a reply whose opening tag the chat template wrote, so that
/// only the closing tag is in the reply; otherwise 0. The last character of the tag is left to find JSON
/// after it.
pub(super) fn end_of_unopened_thought(text: &str) -> usize {
    let ends = THOUGHTS.iter().filter_map(|(open, close)| {
        let at = text.find(close)?;
        let end = at + close.len();
        // A tag in the middle of a line of code or of a JSON string does not end a thought.
        let is_end = text[end..].is_empty()
            || text[end..].starts_with(|c: char| c.is_whitespace() || "<[{]✿".contains(c));
        (is_end && !text[..at].contains(open)).then_some(end - 1)
    });
    ends.min().unwrap_or(0)
}

/// Returns the reasoning that makes up a whole reply, without its tags. One of them may be missing.
pub(super) fn whole_thought(text: &str) -> Option<&str> {
    let text = text.trim();
    THOUGHTS.iter().find_map(|(open, close)| {
        let opened = text.strip_prefix(open);
        let closed = opened.unwrap_or(text).strip_suffix(close);
        let thought = closed.or(opened)?;
        (!thought.contains(open) && !thought.contains(close)).then_some(thought)
    })
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

/// Returns whether the tag that ends at `end` has a short word as its name, which other documents may use too.
pub(super) fn is_short_tag(text: &str, end: usize) -> bool {
    let before = &text[..end];
    let tag = before.rfind('<').map_or("", |at| &before[at..]);
    SHORT_TAG.is_match(tag)
}

/// Returns the end of the body of `<function=…>`, the end of the tag, and whether it was closed.
pub(super) fn function_end(text: &str, body: usize) -> (usize, usize, bool) {
    let rest = &text[body..];
    let (opener, closer) = match is_short_tag(text, body) {
        true => (&SHORT_START, &SHORT_END),
        false => (&FUNCTION_START, &FUNCTION_END),
    };
    let closed = closer.find(rest).map(|end| (end.start(), end.len()));
    let reopened = opener.find(rest).map(|start| start.start());
    match (closed, reopened) {
        (Some((c, n)), r) if r.is_none_or(|r| c < r) => (body + c, body + c + n, true),
        (_, Some(r)) => (body + r, body + r, false),
        _ => (text.len(), text.len(), false),
    }
}
