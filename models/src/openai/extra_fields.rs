//! Fields of replies that a service expects back: reasoning and signatures. They are kept as they are, and
//! joined if they arrive in pieces.

use serde_json::{Map, Value};

/// Fields of a message that are sent back. Others, such as `annotations`, mean nothing in a request.
const MESSAGE_FIELDS: [&str; 9] = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "thought_signature",
    "signature",
    "extra_content",
    "provider_specific_fields",
];

/// Fields of a call that have a meaning of their own.
const CALL_FIELDS: [&str; 6] = ["id", "type", "index", "function", "name", "arguments"];

/// Keys of texts that arrive in pieces inside of objects.
const TEXT_KEYS: [&str; 5] = ["text", "summary", "thinking", "content", "data"];

/// Adds the fields of a message, or of a piece of one.
pub(super) fn add_of_message(extra: &mut Map<String, Value>, message: &Value) {
    for key in MESSAGE_FIELDS {
        if let Some(value) = message.get(key) {
            add(extra, key, value);
        }
    }
}

/// Adds the fields of a call, or of a piece of one. Fields of its function are kept under `function`.
pub(super) fn add_of_call(extra: &mut Map<String, Value>, call: &Value) {
    add_unknown(extra, call);
    let Some(function) = call.get("function") else {
        return;
    };
    let mut inner = match extra.remove("function") {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    };
    add_unknown(&mut inner, function);
    if !inner.is_empty() {
        extra.insert("function".to_owned(), Value::Object(inner));
    }
}

fn add_unknown(extra: &mut Map<String, Value>, from: &Value) {
    let fields = from.as_object().into_iter().flatten();
    for (key, value) in fields.filter(|(key, _)| !CALL_FIELDS.contains(&key.as_str())) {
        add(extra, key, value);
    }
}

fn add(extra: &mut Map<String, Value>, key: &str, value: &Value) {
    let is_empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if is_empty {
        return;
    }
    match extra.get_mut(key) {
        Some(before) => join(before, value, true),
        None => {
            extra.insert(key.to_owned(), value.clone());
        }
    }
}

/// Joins a further piece to a value. Texts are appended if they are texts for people.
fn join(before: &mut Value, piece: &Value, is_text: bool) {
    match (before, piece) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) if is_text => text.push_str(more),
        (Value::Array(items), Value::Array(more)) => {
            for item in more {
                match items.iter_mut().find(|earlier| is_same_item(earlier, item)) {
                    Some(earlier) => join(earlier, item, false),
                    None => items.push(item.clone()),
                }
            }
        }
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in more {
                match fields.get_mut(key) {
                    Some(earlier) => join(earlier, value, TEXT_KEYS.contains(&key.as_str())),
                    None => {
                        fields.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (before, piece) => *before = piece.clone(),
    }
}

/// Returns whether two items of a list are pieces of one.
fn is_same_item(a: &Value, b: &Value) -> bool {
    let index = |item: &Value| item.get("index").cloned();
    index(a).is_some() && index(a) == index(b) && a.get("type") == b.get("type")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_fields_are_joined() {
        let mut extra = Map::new();
        for piece in [
            json!({"reasoning_content": "I ", "content": "x", "reasoning_details": [{"index": 0, "type": "reasoning.text", "text": "I ", "signature": null}]}),
            json!({"reasoning_content": null, "annotations": []}),
            json!({"reasoning_content": "think.", "reasoning_details": [{"index": 0, "type": "reasoning.text", "text": "think.", "signature": "s"}, {"index": 1, "type": "reasoning.encrypted", "data": "d"}]}),
        ] {
            add_of_message(&mut extra, &piece);
        }
        let expected = json!({
            "reasoning_content": "I think.",
            "reasoning_details": [
                {"index": 0, "type": "reasoning.text", "text": "I think.", "signature": "s"},
                {"index": 1, "type": "reasoning.encrypted", "data": "d"},
            ],
        });
        assert_eq!(Value::Object(extra), expected);
    }

    #[test]
    fn unknown_fields_of_calls_are_kept() {
        let mut extra = Map::new();
        let signature = json!({"google": {"thought_signature": "opaque"}});
        let call = json!({"id": "a", "type": "function", "index": 0, "extra_content": signature,
            "function": {"name": "f", "arguments": "{}", "thought_signature": "s"}});
        add_of_call(&mut extra, &call);
        let expected = json!({"extra_content": signature, "function": {"thought_signature": "s"}});
        assert_eq!(Value::Object(extra), expected);
    }
}
