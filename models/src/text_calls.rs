//! Parses tool calls that a model writes as text.
//!
//! Some models have no tool calls of their own, and some servers do not translate them. Such models write
//! JSON in a fence, in `<tool_call>` tags, bare, or `<function=name>` blocks, or with the tokens of their chat
//! template (`families`). Text with a single reading becomes a call. Text that is meant as a call but
//! unreadable becomes a [`MalformedCall`] with the reason. Code and JSON that are merely shown stay text, and
//! reasoning (`<think>`) is never a call.

mod arguments;
mod blocks;
mod families;
mod marks;
mod named_calls;
mod names;
mod pairs;
pub mod parse_call;
mod pythonic;
mod xml;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use testwright_sandboxes::Pattern;
use testwright_tools::tool::ToolSpec;

use super::{MalformedCall, near_json};
use blocks::{Block, Form};
use families::Opened;
use parse_call::ParsedCall;

/// Maximum bytes of a malformed call to keep.
const MAX_KEPT_BYTES: usize = 4000;

/// Languages of fences that may contain calls.
static CALL_FENCE: Pattern =
    Pattern::new("^(?:json[5c]?|tool|tool_calls?|tool_code|function_call|text|xml|)$");

/// Maximum number of blocks to scan; a model that repeats itself forever is not worth more.
const MAX_BLOCKS: usize = 500;

/// Problem of a call that the end of a reply cut off.
const CUT_CALL: &str =
    "the reply reached its token limit in the middle of this call; write less in one call";

/// The contents of a reply's text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextCalls {
    /// Text without the readable calls; unreadable ones are still in it.
    pub content: String,
    /// Names and arguments, in the order of the text.
    pub calls: Vec<(String, Map<String, Value>)>,
    /// Malformed calls, all without an id.
    pub malformed: Vec<MalformedCall>,
}

/// Reads the calls in a text. `whole` is false if the reply hit its token limit.
pub fn read(text: &str, tools: &[ToolSpec], whole: bool) -> TextCalls {
    let text_calls = read_plain(text, tools, whole);
    // Some servers escape the whole text for HTML.
    if text_calls.calls.is_empty()
        && let Some(plain) = marks::without_escapes(text)
    {
        let in_plain = read_plain(&plain, tools, whole);
        if !in_plain.calls.is_empty() && in_plain.malformed.is_empty() {
            return in_plain;
        }
    }
    text_calls
}

/// Reads a text without looking for escapes, which would double the work for each tag around a call.
fn read_plain(text: &str, tools: &[ToolSpec], whole: bool) -> TextCalls {
    let mut text_calls = TextCalls::default();
    if tools.is_empty() {
        text.clone_into(&mut text_calls.content);
        return text_calls;
    }
    let scan = Scan { tools, whole };
    let mut text_parts: Vec<&str> = Vec::new();
    let mut from = 0;
    let mut at = blocks::end_of_unopened_thought(text);
    let mut remaining_blocks = MAX_BLOCKS;
    while let Some(block) = blocks::next(text, at) {
        let start = block.start;
        let is_counted = match block.form {
            Form::Bracket => false,
            Form::Element(name) => tools.iter().any(|tool| tool.name == name),
            _ => true,
        };
        remaining_blocks -= usize::from(is_counted);
        if remaining_blocks == 0 {
            break;
        }
        if matches!(block.form, Form::InventedAnswer) {
            if text_calls.calls.is_empty() {
                at = start + 1;
                continue;
            }
            break;
        }
        let (end, pieces) = scan.block(text, block);
        at = text.ceil_char_boundary(end.max(start + 1));
        if pieces.is_empty() {
            continue;
        }
        if pieces.iter().all(ParsedCall::is_call) {
            text_parts.push(&text[from..start]);
            from = at;
        }
        for piece in pieces {
            match piece {
                ParsedCall::Call { name, arguments } => text_calls.calls.push((name, arguments)),
                ParsedCall::Malformed { name, problem } => {
                    text_calls.malformed.push(MalformedCall {
                        name,
                        text: cut(&text[start..at]),
                        problem,
                        ..MalformedCall::default()
                    })
                }
                ParsedCall::Other => {}
            }
        }
    }
    text_parts.push(&text[from..]);
    text_calls.content = join(&text_parts);
    if text_calls.calls.is_empty() && text_calls.malformed.is_empty() {
        text_calls.read_as_python(&scan);
        if let Some(in_thought) =
            blocks::whole_thought(text).and_then(|thought| read_thought(thought, tools, whole))
        {
            return in_thought;
        }
    }
    if !text_calls.calls.is_empty() {
        let plain = marks::without_marks(&text_calls.content).trim().to_owned();
        text_calls.content = plain;
    }
    text_calls
}

/// Reads reasoning after which nothing comes, because the model began a call without ending its reasoning.
pub fn read_thought(thought: &str, tools: &[ToolSpec], whole: bool) -> Option<TextCalls> {
    // Only tags and tokens mark a call; other forms may be considerations.
    if !thought.trim_end().ends_with('>') {
        return None;
    }
    let in_thought = read_plain(thought, tools, whole);
    if in_thought.calls.is_empty() || !in_thought.malformed.is_empty() {
        return None;
    }
    // After a call that was only considered, the reasoning goes on.
    let last = in_thought.content.lines().last().unwrap_or_default();
    let plain = marks::without_marks(thought);
    let goes_on = !last.is_empty() && plain.trim_end().ends_with(last);
    (!goes_on).then_some(in_thought)
}

impl TextCalls {
    /// Reads a reply that consists of calls in Python and nothing else.
    fn read_as_python(&mut self, scan: &Scan<'_>) {
        let text = pythonic::without_fence(marks::without_marks(&self.content).trim()).to_owned();
        if !scan.is_python_call(&text) {
            return;
        }
        let Ok((end, pieces)) = pythonic::read(scan, &text) else {
            return;
        };
        if end < text.len() || !pieces.iter().all(ParsedCall::is_call) {
            return;
        }
        self.content.clear();
        for piece in pieces {
            if let ParsedCall::Call { name, arguments } = piece {
                self.calls.push((name, arguments));
            }
        }
    }

    /// Returns the calls and the problems, without the text.
    fn into_pieces(self) -> Vec<ParsedCall> {
        let calls = self
            .calls
            .into_iter()
            .map(|(name, arguments)| ParsedCall::Call { name, arguments });
        let bad = self.malformed.into_iter().map(|bad| ParsedCall::Malformed {
            name: bad.name,
            problem: bad.problem,
        });
        calls.chain(bad).collect()
    }
}

/// Returns the start of a text, at most [`MAX_KEPT_BYTES`] bytes.
pub fn cut(text: &str) -> String {
    if text.len() <= MAX_KEPT_BYTES {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_KEPT_BYTES)])
}

fn join(pieces: &[&str]) -> String {
    match pieces {
        [one] => (*one).to_owned(),
        many => {
            let parts: Vec<&str> = many
                .iter()
                .map(|p| p.trim())
                .filter(|p| !p.is_empty())
                .collect();
            parts.join("\n")
        }
    }
}

/// A scan for calls of these tools.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'a> {
    pub(crate) tools: &'a [ToolSpec],
    /// Whether the reply did not hit its token limit.
    pub(crate) whole: bool,
}

impl<'a> Scan<'a> {
    /// Returns the tool that a name means, or the problem with the name.
    fn find_tool(&self, name: &str) -> Result<&'a ToolSpec, String> {
        names::find_tool(name, self.tools)
    }

    /// Returns whether this is the name of a tool, apart from marks and case.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.find_tool(name).is_ok()
    }

    /// Returns whether a text starts like a call of a tool in Python.
    fn is_python_call(&self, text: &str) -> bool {
        pythonic::first_name(text).is_some_and(|name| self.has_tool(name))
    }

    /// Returns the calls of one block and the offset after it.
    fn block(&self, text: &str, block: Block<'_>) -> (usize, Vec<ParsedCall>) {
        let Block { start, body, form } = block;
        match form {
            Form::Thought => (body, Vec::new()),
            Form::InventedAnswer => (text.len(), Vec::new()),
            Form::Fence(info) => self.fence(text, &info, body),
            Form::Tag(name) => self.tag(text, name, body),
            Form::Family(read) => {
                let calls = read(self, &Opened { text, start, body });
                calls.unwrap_or((body, Vec::new()))
            }
            Form::Function(name) => self.function(text, name, body),
            Form::Element(name) => self.element(text, name, body),
            Form::Bracket => self.bare(text, start),
        }
    }

    fn fence(&self, text: &str, info: &str, body: usize) -> (usize, Vec<ParsedCall>) {
        let (body_end, end) = blocks::fence_end(text, body);
        if !CALL_FENCE.is_match(info) {
            return (end, Vec::new());
        }
        let inner = &text[body..body_end];
        let lead = inner.trim_start();
        if lead.starts_with('<') {
            let text_calls = read_plain(inner, self.tools, self.whole);
            return (end, text_calls.into_pieces());
        }
        if matches!(info, "tool_code" | "tool_call" | "tool_calls")
            && let Some((_, calls)) = families::python_calls(self, inner, 0, &[])
        {
            return (end, calls);
        }
        if !lead.starts_with(['{', '[']) {
            let name = lead.lines().next().unwrap_or_default();
            let is_call = info.starts_with("tool") && self.whole && self.has_tool(name);
            let call = is_call.then(|| self.named_call(inner));
            return (end, call.into_iter().collect());
        }
        // A string in the call may itself contain a fence, so the value decides where the block ends.
        let tagged = info.starts_with("tool") || info == "function_call";
        let (values, value_end) =
            match values(&text[body..], self.whole, |rest| rest.starts_with("```")) {
                Ok((values, used)) => (values, body + used),
                Err(_) => match values(inner, self.whole, str::is_empty) {
                    Ok((values, _)) => (values, body_end),
                    Err(problem) => {
                        let bad = self.unreadable(inner, &problem, tagged);
                        return (end, bad.into_iter().collect());
                    }
                },
            };
        let (_, end) = blocks::fence_end(text, value_end);
        (end, self.shapes(&values, tagged))
    }

    fn tag(&self, text: &str, tag: &str, body: usize) -> (usize, Vec<ParsedCall>) {
        let close = format!("</{tag}>");
        let (inner_end, end, closed) = marks::tag_end(text, tag, body);
        let inner = &text[body..inner_end];
        let mut lead = inner.trim_start();
        if let Some(fenced) = lead.strip_prefix("```") {
            let line = fenced.find('\n').unwrap_or(fenced.len());
            lead = fenced[line..].trim_start();
            lead = lead.trim_end().strip_suffix("```").unwrap_or(lead);
        }
        if lead.starts_with(['{', '[']) {
            let rest = text[body..].trim_start();
            let start = text.len() - rest.len();
            if rest.starts_with(['{', '['])
                && let Ok((values, used)) =
                    values(rest, self.whole, |rest| rest.starts_with(&close))
            {
                let value_end = start + used;
                let end = text[value_end..]
                    .trim_start()
                    .strip_prefix(&close)
                    .map_or(value_end, |rest| text.len() - rest.len());
                return (end, self.shapes(&values, true));
            }
            return match values(lead, self.whole, str::is_empty) {
                Ok((values, _)) => (end, self.shapes(&values, true)),
                Err(problem) => (
                    end,
                    self.unreadable(lead, &problem, true).into_iter().collect(),
                ),
            };
        }
        let first = blocks::next(inner, 0).map(|block| block.form);
        if let Some(Form::Function(_) | Form::Tag(_)) = first {
            let text_calls = read_plain(inner, self.tools, self.whole || closed);
            return (end, text_calls.into_pieces());
        }
        if let Some((_, calls)) = families::python_calls(self, inner, 0, &[]) {
            return (end, calls);
        }
        if closed || self.whole {
            let mut calls = self.xml_calls(inner);
            if calls.is_empty() {
                let call = self.yaml_call(inner).or_else(|| self.yaml_call(lead));
                // Without an end, the tag may be a part of prose.
                calls.extend(call.filter(|call| closed || call.is_call()));
            }
            if !calls.is_empty() {
                return (end, calls);
            }
        }
        match closed {
            true => (end, vec![self.named_call(inner)]),
            false if !inner.contains("<arg_key>") => (body, Vec::new()),
            false if self.whole => (end, vec![self.named_call(inner)]),
            false => (end, vec![self.cut_call(inner)]),
        }
    }

    fn function(&self, text: &str, name: &str, body: usize) -> (usize, Vec<ParsedCall>) {
        if blocks::is_short_tag(text, body) && !self.has_tool(name) {
            return (body, Vec::new());
        }
        let (inner_end, end, closed) = blocks::function_end(text, body);
        let inner = &text[body..inner_end];
        if inner.trim_start().starts_with('{') {
            // Some models open the tag again instead of closing it.
            let inner = inner.trim().trim_end_matches("<function>");
            let piece = self.json_call(name, inner);
            return (end, vec![piece]);
        }
        let mut parameters = pairs::parameters(inner);
        if parameters.is_empty() {
            parameters = self.parameter_elements(name, inner);
        }
        if !closed && !self.whole {
            return (end, vec![ParsedCall::malformed(Some(name), CUT_CALL)]);
        }
        if parameters.is_empty() && !inner.trim().is_empty() {
            let problem = format!(
                "between <function={}> and </function> stand neither a JSON object nor <parameter=…> blocks",
                near_json::excerpt(name)
            );
            return (end, vec![ParsedCall::malformed(Some(name), problem)]);
        }
        (end, vec![self.text_call(name, &parameters)])
    }

    /// Reads JSON that starts a line outside of fences and tags.
    fn bare(&self, text: &str, start: usize) -> (usize, Vec<ParsedCall>) {
        let rest = &text[start..];
        if rest.starts_with('[')
            && self.is_python_call(rest)
            && let Some(calls) = families::python_calls(self, text, start, &[])
        {
            return calls;
        }
        match near_json::prefix(&text[start..], self.whole) {
            Ok(prefix) => {
                let mut end = start + prefix.end;
                let shapes = self.shapes(&[prefix.value], false);
                if !shapes.is_empty() {
                    let rest = &text[end..];
                    end += rest.len() - rest.trim_start_matches(['}', ']', ',', ';']).len();
                }
                (end, shapes)
            }
            Err(problem) => {
                let bad = self.unreadable(&text[start..], &problem, false);
                match bad {
                    Some(bad) => (text.len(), vec![bad]),
                    None => (start + 1, Vec::new()),
                }
            }
        }
    }

    fn shapes(&self, values: &[Value], tagged: bool) -> Vec<ParsedCall> {
        let mut shapes = Vec::new();
        for value in values {
            self.collect(value, tagged, &mut shapes);
        }
        // A list of calls and other values was not meant as calls, unless it is marked as such.
        if !tagged && shapes.iter().any(|s| matches!(s, ParsedCall::Other)) {
            return Vec::new();
        }
        shapes.retain(|s| !matches!(s, ParsedCall::Other));
        shapes
    }
}

/// Reads consecutive JSON values until `is_end` accepts the rest; also returns the number of bytes read.
fn values(
    text: &str,
    whole: bool,
    is_end: impl Fn(&str) -> bool,
) -> Result<(Vec<Value>, usize), near_json::Problem> {
    let mut values = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let lead = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || (!values.is_empty() && matches!(c, ',' | ';' | '}' | ']'))
        });
        let lead_at = text.len() - lead.len();
        if !values.is_empty() && (lead.is_empty() || is_end(lead)) && !lead.starts_with('{') {
            return Ok((values, lead_at));
        }
        let prefix = near_json::prefix(lead, whole)?;
        values.push(prefix.value);
        at = lead_at + prefix.end;
    }
}
