//! Reads calls that are a name followed by arguments, and arguments in YAML.

use serde_json::Value;
use testwright_sandboxes::Pattern;

use super::parse_call::{self, ARGUMENT_KEYS, NAME_KEYS, ParsedCall};
use super::{CUT_CALL, Scan, marks, pairs};
use crate::near_json;

/// A line of YAML with a key.
static ENTRY: Pattern = Pattern::new(r#"\A["']?([A-Za-z_]\w*)["']?:(?:[ \t]+(.*?))?\s*\z"#);

impl Scan<'_> {
    /// Returns the problem of a call whose end is missing because the reply reached its limit.
    pub(super) fn cut_call(&self, inner: &str) -> ParsedCall {
        let mut words = inner.split(['<', '\n']).map(str::trim);
        let name = words.find(|word| !word.is_empty());
        let tool = name.and_then(|name| self.find_tool(name).ok());
        ParsedCall::malformed(tool.map(|tool| &*tool.name), CUT_CALL)
    }

    /// Reads a name followed by arguments: JSON, pairs of `<arg_key>` and `<arg_value>`, or YAML.
    pub(super) fn named_call(&self, inner: &str) -> ParsedCall {
        let not_an_object = || {
            let problem = format!("it is not a JSON object. {}", parse_call::FORM);
            ParsedCall::malformed(None, problem)
        };
        let inner = inner.trim();
        let name_end = inner
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-' && c != '.')
            .unwrap_or(inner.len());
        let (name, rest) = (&inner[..name_end], inner[name_end..].trim());
        let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
        let rest = rest.strip_prefix("<tool_sep>").unwrap_or(rest).trim_start();
        let bare = marks::without_dressing(rest);
        let rest = if rest.starts_with("```") {
            &*bare
        } else {
            rest
        };
        if name.is_empty() {
            return not_an_object();
        }
        if rest.starts_with('{') {
            return self.json_call(name, rest);
        }
        let mut pairs = pairs::arg_pairs(rest);
        if pairs.is_empty() {
            pairs = self.parameter_elements(name, rest);
        }
        if rest.is_empty() || !pairs.is_empty() {
            return self.text_call(name, &pairs);
        }
        not_an_object()
    }

    /// Reads YAML with keys for the name and the arguments, or the arguments next to the name.
    pub(super) fn yaml_call(&self, inner: &str) -> Option<ParsedCall> {
        let mut entries = yaml_entries(inner)?;
        let position = |keys: &[&str]| {
            let mut names = entries.iter().map(|(key, _)| key.as_str());
            names.position(|key| keys.contains(&key))
        };
        let arguments = position(&ARGUMENT_KEYS).map(|at| entries[at].1.clone());
        let name_at = position(&NAME_KEYS)?;
        let (_, name) = entries.remove(name_at);
        let Some(arguments) = arguments else {
            return Some(self.text_call(&name, &entries));
        };
        let arguments = match yaml_entries(&arguments) {
            Some(entries) => return Some(self.text_call(&name, &entries)),
            None => Value::String(arguments),
        };
        Some(self.call(&name, arguments))
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the keys and values of a YAML mapping. Values that are mappings stay YAML, and lists become JSON.
pub(super) fn yaml_entries(text: &str) -> Option<Vec<(String, String)>> {
    let is_blank = |line: &&str| line.trim().is_empty();
    let mut lines = text.lines().skip_while(is_blank).peekable();
    let indent = lines.peek().map_or(0, |line| indent_of(line));
    let mut entries = Vec::new();
    while let Some(line) = lines.next() {
        let entry = ENTRY.captures(line.get(indent..)?)?;
        let is_inside = |line: &&str| {
            let is_item = line
                .get(indent..)
                .is_some_and(|rest| rest.starts_with("- "));
            line.trim().is_empty() || indent_of(line) > indent || is_item
        };
        let mut block = Vec::new();
        while let Some(next) = lines.next_if(is_inside) {
            block.push(next);
        }
        let inline = entry.get(2).map_or("", |value| value.as_str());
        entries.push((entry[1].to_owned(), yaml_value(inline, &block)?));
    }
    Some(entries)
}

/// Reads the value of an entry: the text after its key, or the lines below it.
fn yaml_value(inline: &str, block: &[&str]) -> Option<String> {
    let filled = block.iter().filter(|line| !line.trim().is_empty());
    let depth = filled.map(|line| indent_of(line)).min().unwrap_or(0);
    let lines = block
        .iter()
        .map(|line| line.get(depth..).unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.trim_end();
    if !matches!(inline, "" | "|" | "|-" | "|+") {
        // A plain value that goes on in the next lines could be read in several ways.
        return yaml_scalar(inline).filter(|_| text.is_empty());
    }
    let items = text.lines().map(|line| line.strip_prefix("- "));
    match items.collect::<Option<Vec<_>>>() {
        Some(items) if inline.is_empty() && !items.is_empty() => {
            let items = items.into_iter().map(|item| yaml_scalar(item.trim()));
            Some(Value::from(items.collect::<Option<Vec<_>>>()?).to_string())
        }
        _ => Some(text.to_owned()),
    }
}

/// Removes the quotes around a value.
fn yaml_scalar(text: &str) -> Option<String> {
    // Backslashes are plain in single quotes, and a quote is doubled.
    if let Some(rest) = text.strip_prefix('\'') {
        let parts: Vec<&str> = rest.strip_suffix('\'')?.split("''").collect();
        return (!parts.iter().any(|part| part.contains('\''))).then(|| parts.join("'"));
    }
    if !text.starts_with('"') {
        return Some(text.to_owned());
    }
    let value = near_json::read(text, true).ok()?;
    Some(value.as_str()?.to_owned())
}
