//! Reads calls in XML whose tags are named after tools and parameters, or `name` and `arguments`.

use serde_json::Value;
use testwright_sandboxes::Pattern;
use testwright_tools::tool::ToolSpec;

use super::Scan;
use super::named_calls::yaml_entries;
use super::pairs::unwrap_lines;
use super::parse_call::ParsedCall;
use crate::near_json;

static ELEMENT: Pattern = Pattern::new(r"<([A-Za-z_]\w*)>");

/// Elements with the name of a tool.
const NAMES: [&str; 4] = ["name", "tool_name", "function", "tool"];

impl Scan<'_> {
    /// Reads calls in XML: an element for the name and one for the arguments, or one with the tool's name.
    pub(super) fn xml_calls(&self, inner: &str) -> Vec<ParsedCall> {
        let children = elements(inner);
        let text_of = |keys: &[&str]| {
            let element = children
                .iter()
                .find(|(key, _)| keys.contains(&key.as_str()));
            element.map(|(_, text)| text.as_str())
        };
        if let Some(name) = text_of(&NAMES) {
            if let Some(arguments) = text_of(&["arguments", "parameters", "args", "input"]) {
                return vec![self.call_with(name, arguments)];
            }
            let mut arguments = children.clone();
            arguments.retain(|(key, _)| !NAMES.contains(&key.as_str()));
            return vec![self.text_call(name, &arguments)];
        }
        let calls = children
            .iter()
            .flat_map(|(name, text)| match name.as_str() {
                "invoke" => self.xml_calls(text),
                name if self.has_tool(name) => vec![self.call_with(name, text)],
                _ => Vec::new(),
            });
        calls.collect()
    }

    /// Reads the arguments of a call, which are JSON or elements.
    fn call_with(&self, name: &str, arguments: &str) -> ParsedCall {
        if arguments.trim_start().starts_with('{') {
            return self.call(name, arguments.into());
        }
        self.text_call(name, &elements_or_yaml(arguments))
    }

    /// Reads an element that is named after a tool and contains its parameters, as Cline's prompts teach it.
    pub(super) fn element(&self, text: &str, name: &str, body: usize) -> (usize, Vec<ParsedCall>) {
        // JSON may follow the tag.
        let before_body = body.saturating_sub(1);
        // Replies may have many other tags, so only tools are worth a search for the end.
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            return (before_body, Vec::new());
        };
        let Some((inner, after)) = text[body..].split_once(&format!("</{name}>")) else {
            return (before_body, Vec::new());
        };
        if let Ok(Value::Object(arguments)) = near_json::read(inner, self.whole)
            && !arguments.is_empty()
            && arguments.keys().all(|key| has_parameter(tool, key))
        {
            let call = self.call(name, arguments.into());
            return (text.len() - after.len(), vec![call]);
        }
        let children = elements_or_yaml(inner);
        if children.is_empty() || !children.iter().all(|(key, _)| has_parameter(tool, key)) {
            return (before_body, Vec::new());
        }
        let call = self.text_call(name, &children);
        (text.len() - after.len(), vec![call])
    }

    /// Returns the elements or entries of a call that are named after the tool's parameters; empty if one is not.
    pub(super) fn parameter_elements(&self, name: &str, inner: &str) -> Vec<(String, String)> {
        let tool = self.find_tool(name).ok();
        let is_parameter = |key: &str| tool.is_some_and(|tool| has_parameter(tool, key));
        let children = elements_or_yaml(inner);
        match children.iter().all(|(key, _)| is_parameter(key)) {
            true => children,
            false => Vec::new(),
        }
    }
}

fn has_parameter(tool: &ToolSpec, key: &str) -> bool {
    tool.parameters["properties"].get(key).is_some()
}

fn elements_or_yaml(inner: &str) -> Vec<(String, String)> {
    // A value in YAML may contain elements.
    let entries = yaml_entries(inner).filter(|entries| !entries.is_empty());
    entries.unwrap_or_else(|| elements(inner))
}

/// Returns the names and texts of `<name>text</name>`, up to the first that is not closed.
fn elements(inner: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = inner;
    while let Some((all, name)) = ELEMENT.captures(rest).and_then(|c| c.get(0).zip(c.get(1))) {
        let text = &rest[all.end()..];
        let close = format!("</{}>", name.as_str());
        let Some((value, after)) = text.split_once(&close) else {
            break;
        };
        pairs.push((name.as_str().to_owned(), unwrap_lines(value)));
        rest = after;
    }
    pairs
}
