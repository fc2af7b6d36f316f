//! Decides whether a value is a tool call, and what is wrong with one that nearly is. Calls by the provider's
//! own protocol are checked here too, so that a model gets the same messages in both cases.

use serde_json::{Map, Value};
use testwright_sandboxes::Pattern;
use testwright_tools::tool::ToolSpec;

use super::Scan;
use super::arguments::{fitted, kind, object};
use super::pairs;
use crate::near_json::{self, Problem};

/// Instructions on how to write a call, for models that got it wrong.
pub const FORM: &str = "Write a call as {\"name\": \"…\", \"arguments\": {…}}";

/// A value that was checked for being a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedCall {
    /// A call that can run.
    Call {
        /// Name of a known tool.
        name: String,
        /// Arguments by name.
        arguments: Map<String, Value>,
    },
    /// A call that is not usable.
    Malformed {
        /// Name of the tool, if it could be read.
        name: Option<String>,
        /// Problem with the call, to report to the model.
        problem: String,
    },
    /// A value that is not a call.
    Other,
}

impl ParsedCall {
    pub(super) fn is_call(&self) -> bool {
        matches!(self, ParsedCall::Call { .. })
    }

    pub(super) fn malformed(name: Option<&str>, problem: impl Into<String>) -> ParsedCall {
        ParsedCall::Malformed {
            name: name.map(str::to_owned),
            problem: problem.into(),
        }
    }
}

pub(super) const NAME_KEYS: [&str; 7] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "recipient_name",
    "action",
];
pub(super) const ARGUMENT_KEYS: [&str; 9] = [
    "arguments",
    "parameters",
    "args",
    "kwargs",
    "input",
    "tool_input",
    "tool_args",
    "action_input",
    "params",
];

/// Keys of calls in an object around them. The last is of OpenAI's `multi_tool_use.parallel`.
const CALL_KEYS: [&str; 8] = [
    "tool_calls",
    "tool_call",
    "function_call",
    "functionCall",
    "toolCall",
    "toolCalls",
    "calls",
    "tool_uses",
];

impl Scan<'_> {
    /// Checks a call with a name and arguments. The tool must be known, and the arguments must be an object or a
    /// text that contains one.
    pub(crate) fn call(&self, name: &str, arguments: Value) -> ParsedCall {
        let tool = match self.find_tool(name) {
            Ok(tool) => tool,
            Err(problem) => return ParsedCall::malformed(Some(name.trim()), problem),
        };
        // Servers pass on what they did not translate.
        let elements = arguments.as_str().filter(|_| self.whole);
        if let Some(pairs) = elements.and_then(pairs::elements) {
            return self.text_call(&tool.name, &pairs);
        }
        match object(arguments, self.whole) {
            Ok(arguments) => ParsedCall::Call {
                name: tool.name.clone(),
                arguments: fitted(arguments, tool),
            },
            Err(problem) => ParsedCall::malformed(Some(&tool.name), problem),
        }
    }

    /// Checks a call whose arguments are a text in JSON.
    pub(super) fn json_call(&self, name: &str, json: &str) -> ParsedCall {
        match near_json::read(json, self.whole) {
            Ok(value) => self.call(name, value),
            Err(problem) => unreadable_arguments(name, &problem),
        }
    }

    /// Checks a call whose arguments are texts; each is parsed according to its schema.
    pub(super) fn text_call(&self, name: &str, texts: &[(String, String)]) -> ParsedCall {
        let tool = match self.find_tool(name) {
            Ok(tool) => tool,
            Err(problem) => return ParsedCall::malformed(Some(name), problem),
        };
        let mut arguments = Map::new();
        for (key, text) in texts {
            let properties = tool.parameters.get("properties");
            let schema = properties.and_then(|properties| properties.get(key));
            if arguments.insert(key.clone(), typed(text, schema)).is_some() {
                let key = near_json::excerpt(key);
                let problem = format!("the parameter \"{key}\" is given twice");
                return ParsedCall::malformed(Some(&tool.name), problem);
            }
        }
        ParsedCall::Call {
            name: tool.name.clone(),
            arguments: fitted(arguments, tool),
        }
    }

    /// Classifies a value found in a text as one call, several, or something else. `tagged` means that only calls
    /// are expected there, so that a mistake is reported instead of being taken for other JSON.
    pub(crate) fn collect(&self, value: &Value, tagged: bool, into: &mut Vec<ParsedCall>) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                for item in items {
                    self.collect(item, tagged, into);
                }
            }
            Value::Object(map) => {
                for key in CALL_KEYS {
                    if let (Some(inner @ (Value::Array(_) | Value::Object(_))), true) =
                        (map.get(key), map.len() <= 3)
                    {
                        return self.collect(inner, tagged, into);
                    }
                }
                // The form `{"type": "function", "function": {"name": …, "arguments": …}}`.
                if let Some(inner @ Value::Object(_)) = map.get("function") {
                    return self.collect(inner, tagged, into);
                }
                into.push(self.map_call(map, tagged));
            }
            _ if tagged => {
                let problem = format!("it is {}, not a JSON object. {FORM}", kind(value));
                into.push(ParsedCall::malformed(None, problem));
            }
            _ => into.push(ParsedCall::Other),
        }
    }

    fn map_call(&self, map: &Map<String, Value>, tagged: bool) -> ParsedCall {
        let name = NAME_KEYS
            .iter()
            .find_map(|key| Some((*key, map.get(*key)?.as_str()?)));
        let Some((name_key, name)) = name else {
            return self.nameless(map, tagged);
        };
        let tool = self.find_tool(name).ok();
        let arguments = ARGUMENT_KEYS
            .iter()
            .find_map(|key| Some((*key, map.get(*key)?)));
        if is_schema(map) {
            let problem = format!("it repeats the description of the tool. {FORM}");
            return match tagged {
                true => ParsedCall::malformed(Some(name), problem),
                false => ParsedCall::Other,
            };
        }
        match arguments {
            Some((_, value)) if tool.is_some() || tagged => self.call(name, value.clone()),
            Some((key @ ("arguments" | "parameters"), value)) => {
                // Without a mark and a known tool, accept only what cannot be anything else.
                let plain = map
                    .keys()
                    .all(|k| k == name_key || k == key || k == "id" || k == "type");
                match plain && !value.is_array() && object(value.clone(), self.whole).is_ok() {
                    true => self.call(name, value.clone()),
                    false => ParsedCall::Other,
                }
            }
            Some(_) => ParsedCall::Other,
            None => match tool {
                Some(tool) => flat(map, name_key, tool, tagged),
                None if tagged => self.call(name, Value::Null),
                None => ParsedCall::Other,
            },
        }
    }

    /// Reads `{"search": {"pattern": "x"}}`, if only calls are expected.
    fn nameless(&self, map: &Map<String, Value>, tagged: bool) -> ParsedCall {
        if !tagged {
            return ParsedCall::Other;
        }
        if map.len() == 1
            && let Some((name, value @ Value::Object(_))) = map.iter().next()
            && self.has_tool(name)
        {
            return self.call(name, value.clone());
        }
        ParsedCall::malformed(None, format!("it has no \"name\". {FORM}"))
    }

    /// Describes the problem with a text that is not JSON; `None` if it does not look like a call.
    pub(super) fn unreadable(
        &self,
        text: &str,
        problem: &Problem,
        tagged: bool,
    ) -> Option<ParsedCall> {
        let head = &text[..text.floor_char_boundary(4000)];
        let name = NAME
            .captures(&head[..head.floor_char_boundary(300)])
            .and_then(|c| c.get(1))
            .map(|m| m.as_str().trim());
        let is_known = name.is_some_and(|name| self.has_tool(name));
        let is_call = tagged || is_known && ARGUMENTS.is_match(head);
        if !is_call {
            return None;
        }
        let problem = match problem.cut {
            true => format!("its JSON is cut short: {problem}"),
            false => format!("its JSON cannot be read: {problem}"),
        };
        Some(ParsedCall::malformed(name, problem))
    }
}

fn typed(text: &str, schema: Option<&Value>) -> Value {
    let mut types = Vec::new();
    if let Some(schema) = schema {
        types_of(schema, &mut types);
    }
    let word = text.trim();
    if types.contains(&"null") && matches!(word, "null" | "None") {
        return Value::Null;
    }
    if types.is_empty() || types.contains(&"string") {
        return Value::String(text.to_owned());
    }
    near_json::read(word, true).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn types_of<'a>(schema: &'a Value, types: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(one)) => types.push(one),
        Some(Value::Array(many)) => types.extend(many.iter().filter_map(Value::as_str)),
        _ => {}
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(parts)) = schema.get(key) {
            for part in parts {
                types_of(part, types);
            }
        }
    }
}

/// Reads `{"name": "search", "pattern": "x"}`: a known tool with its parameters next to the name.
fn flat(map: &Map<String, Value>, name_key: &str, tool: &ToolSpec, tagged: bool) -> ParsedCall {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (key, value) in map.iter().filter(|(k, _)| *k != name_key) {
        if properties.is_some_and(|p| p.contains_key(key)) {
            arguments.insert(key.clone(), value.clone());
        } else if tagged && !matches!(key.as_str(), "id" | "type") {
            let key = near_json::excerpt(key);
            let problem =
                format!("it has no \"arguments\", and \"{key}\" is not a parameter. {FORM}");
            return ParsedCall::malformed(Some(&tool.name), problem);
        } else if !tagged {
            return ParsedCall::Other;
        }
    }
    let needs = tool.parameters.get("required").and_then(Value::as_array);
    let lacks = needs.is_some_and(|needs| {
        needs
            .iter()
            .filter_map(Value::as_str)
            .any(|n| !arguments.contains_key(n))
    });
    if lacks && !tagged {
        return ParsedCall::Other;
    }
    ParsedCall::Call {
        name: tool.name.clone(),
        arguments,
    }
}

/// Returns the call of a tool whose arguments are not JSON.
pub(super) fn unreadable_arguments(name: &str, problem: &Problem) -> ParsedCall {
    let problem = format!("its arguments cannot be read: {problem}");
    ParsedCall::malformed(Some(name), problem)
}

fn is_schema(map: &Map<String, Value>) -> bool {
    map.get("parameters").is_some_and(|p| {
        p.get("type").is_some_and(|t| t == "object") && p.get("properties").is_some()
    })
}

static NAME: Pattern = Pattern::new(
    r#"^[\s\[]*\{\s*["']?(?:(?:id|type|index)["']?\s*:\s*["']?[\w.\-]*["']?\s*,\s*["']?)?(?:name|tool|tool_name|function)["']?\s*:\s*["']([\w.\- ]+)["']"#,
);

static ARGUMENTS: Pattern = Pattern::new(r#"["']?(?:arguments|parameters|args|input)["']?\s*:"#);
