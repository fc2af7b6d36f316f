//! Texts in the body of a refusal, in whatever form a service sends them.

use serde_json::Value;

/// Keys that lead to a service's own message, in lower case and without `_`. Other content of a body is not
/// passed on.
const MESSAGE_KEYS: [&str; 8] = [
    "message",
    "msg",
    "error",
    "errors",
    "detail",
    "errormessage",
    "errormsg",
    "errordescription",
];

/// Maximum depth of objects and lists in a body.
const MAX_DEPTH: usize = 8;

/// Returns the service's own error message, in any of the formats that servers use. Nothing else of a body is
/// passed on.
pub(super) fn message_in(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    message(&value, false, 0).map(|text| excerpt(&text))
}

fn message(value: &Value, is_message: bool, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::String(text) if is_message && !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => message(items.first()?, is_message, depth + 1),
        Value::Object(fields) => MESSAGE_KEYS.iter().find_map(|key| {
            let is_key = |own: &str| own.to_lowercase().replace('_', "") == *key;
            let (_, value) = fields.iter().find(|(own, _)| is_key(own))?;
            message(value, true, depth + 1)
        }),
        _ => None,
    }
}

/// Returns all texts of a body in lower case, to recognize what they are about. Numbers come with their keys,
/// and JSON in a string is opened.
pub(super) fn all_text(body: &str) -> String {
    let mut text = String::new();
    match serde_json::from_str::<Value>(body) {
        Ok(value) => collect(&value, "", 0, &mut text),
        Err(_) => text.push_str(body),
    }
    text.to_lowercase()
}

fn collect(value: &Value, key: &str, depth: usize, into: &mut String) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                collect(&inner, key, depth + 1, into);
            }
            _ => {
                into.push_str(text);
                into.push('\n');
            }
        },
        // A status is not a number of tokens.
        Value::Number(number) => {
            let key = key.to_lowercase();
            if !key.ends_with("code") && !key.ends_with("status") {
                into.push_str(&format!("{key} {number}\n"));
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect(item, key, depth + 1, into)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| collect(value, key, depth + 1, into)),
        _ => {}
    }
}

/// Returns the start of a text.
pub(super) fn excerpt(text: &str) -> String {
    const MAX: usize = 600;
    let text = text.trim();
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn status_is_not_in_text() {
        let body = r#"{"statusCode": 400, "Status": 422, "limit": 8192}"#;
        assert_eq!(super::all_text(body), "limit 8192\n");
    }
}
