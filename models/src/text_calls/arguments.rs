//! Reads the arguments of a call as an object, and undoes what servers do to them: another object around
//! them, JSON in a string in JSON, markers of the chat template, and quotes around keys.

use serde_json::{Map, Value};
use testwright_tools::tool::ToolSpec;

use super::marks;
use super::names::squeeze;
use super::pairs;
use crate::near_json;

/// Maximum number of objects or strings around the arguments.
const MAX_LAYERS: usize = 4;

/// Returns the arguments as an object; a text that contains one is parsed.
///
/// # Errors
///
/// Fails with a message for the model if the arguments cannot be read, or are not an object.
pub(super) fn object(arguments: Value, whole: bool) -> Result<Map<String, Value>, String> {
    layered(arguments, whole, MAX_LAYERS)
}

fn layered(arguments: Value, whole: bool, layers: usize) -> Result<Map<String, Value>, String> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => match read(&text, whole)? {
            Value::String(inner) if layers == 0 || !is_json_object(&inner) => {
                Err("its arguments are a text, not a JSON object".to_owned())
            }
            value => layered(value, whole, layers.saturating_sub(1)),
        },
        Value::Array(items) if items.is_empty() => Ok(Map::new()),
        Value::Array(mut items) => match named_values(&items) {
            Some(arguments) => Ok(arguments),
            None if items.len() == 1 && items[0].is_object() => {
                layered(items.remove(0), whole, layers)
            }
            None => Err("its arguments are a list, not a JSON object".to_owned()),
        },
        other => Err(format!(
            "its arguments are {}, not a JSON object",
            kind(&other)
        )),
    }
}

/// Reads a list of objects with a name and a value each, such as `[{"name": "pattern", "value": "x"}]`.
fn named_values(items: &[Value]) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    for item in items {
        let fields = item.as_object().filter(|fields| fields.len() == 2)?;
        let name = fields.get("name").or_else(|| fields.get("key"))?;
        let value = fields.get("value")?.clone();
        if arguments.insert(name.as_str()?.to_owned(), value).is_some() {
            return None;
        }
    }
    Some(arguments)
}

/// Returns whether a text looks like an object, perhaps in a fence or encoded once more.
fn is_json_object(text: &str) -> bool {
    let bare = marks::without_dressing(text);
    bare.trim_start().starts_with(['{', '"'])
}

fn read(text: &str, whole: bool) -> Result<Value, String> {
    let problem = match near_json::read(text, whole) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    if problem.cut && !whole {
        return Err(cut_arguments(&problem));
    }
    let bare = marks::without_dressing(text);
    if bare != text
        && let Ok(value) = near_json::read(&bare, whole)
    {
        return Ok(value);
    }
    if let Some(plain) = marks::without_escapes(&bare)
        && let Ok(value) = near_json::read(&plain, whole)
    {
        return Ok(value);
    }
    repeated(&bare, whole).ok_or_else(|| format!("its arguments cannot be read as JSON: {problem}"))
}

/// Describes the problem of arguments that the end of a reply cut off.
pub(super) fn cut_arguments(problem: &near_json::Problem) -> String {
    format!(
        "the reply reached its token limit in the middle of the arguments ({problem}); write less in one call"
    )
}

/// Reads `{}{"pattern": "x"}`: an empty object before the arguments, or the same arguments several times.
fn repeated(text: &str, whole: bool) -> Option<Value> {
    let mut rest = text.trim();
    for nothing in ["null", "\"\""] {
        rest = rest.strip_prefix(nothing).unwrap_or(rest).trim_start();
    }
    if rest.is_empty() {
        return None;
    }
    let mut arguments = Value::Object(Map::new());
    while !rest.is_empty() {
        if !rest.starts_with('{') {
            return None;
        }
        let prefix = near_json::prefix(rest, whole).ok()?;
        if prefix.unclosed {
            return None;
        }
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        if is_empty(&arguments) {
            arguments = prefix.value;
        } else if arguments != prefix.value && !is_empty(&prefix.value) {
            return None;
        }
        rest = rest[prefix.end..].trim();
    }
    Some(arguments)
}

/// Returns the arguments in the form that the tool's schema describes, if only one reading fits.
pub(super) fn fitted(mut arguments: Map<String, Value>, tool: &ToolSpec) -> Map<String, Value> {
    let properties = tool.parameters.get("properties");
    let Some(properties) = properties.and_then(Value::as_object) else {
        return arguments;
    };
    for _ in 0..MAX_LAYERS {
        match unwrapped(&arguments, tool, properties) {
            Some(inner) => arguments = inner,
            None => break,
        }
    }
    with_known_keys(arguments, properties)
}

/// Returns the object inside of an object that only wraps it. Names and remarks may stand next to it.
fn unwrapped(
    arguments: &Map<String, Value>,
    tool: &ToolSpec,
    properties: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let is_known = |key: &String| properties.contains_key(key);
    // Services that know the schema set the tool's own fields to null.
    let has_own = arguments
        .iter()
        .any(|(key, value)| is_known(key) && !is_empty(value));
    if has_own || arguments.keys().all(is_known) {
        return None;
    }
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let has_required = required.is_some_and(|names| !names.is_empty());
    if !has_required && arguments.values().all(is_empty) {
        return Some(Map::new());
    }
    let mut objects = arguments.values().filter_map(inner_object);
    // With several objects, it is open which one is meant.
    let (Some(inner), None) = (objects.next(), objects.next()) else {
        return None;
    };
    let named = with_known_keys(inner.clone(), properties);
    let fits = named.keys().all(is_known) && (!named.is_empty() || !has_required);
    (fits || unwrapped(&inner, tool, properties).is_some()).then_some(inner)
}

/// Returns whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Returns the object in a value: the value itself, a text of it, or the items of a list.
fn inner_object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields.clone()),
        Value::Array(items) if !items.is_empty() => object(value.clone(), true).ok(),
        Value::String(text) if is_json_object(text) => object(value.clone(), true).ok(),
        Value::String(text) => {
            let elements = pairs::elements(text)?.into_iter();
            Some(elements.map(|(key, text)| (key, text.into())).collect())
        }
        _ => None,
    }
}

/// Renames keys that differ from a property only in quotes, case or separators.
fn with_known_keys(
    arguments: Map<String, Value>,
    properties: &Map<String, Value>,
) -> Map<String, Value> {
    if arguments.keys().all(|key| properties.contains_key(key)) {
        return arguments;
    }
    let present: Vec<String> = arguments.keys().cloned().collect();
    let meant = |key: &str| {
        let folded = squeeze(key);
        let mut matching = properties.keys().filter(|name| squeeze(name) == folded);
        match (matching.next(), matching.next()) {
            (Some(name), None) if !present.contains(name) => Some(name.clone()),
            _ => None,
        }
    };
    let mut renamed = Map::new();
    for (key, value) in arguments {
        let name = match properties.contains_key(&key) {
            true => key,
            false => meant(&key).unwrap_or(key),
        };
        renamed.insert(name, value);
    }
    renamed
}

/// Names the type of a value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Null => "null",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
