//! A request's digest, and where two requests begin to differ.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Request;
use crate::hex::hex;

/// SHA-256 over the request's canonical JSON (keys sorted, no white space), in hexadecimal.
pub fn digest(request: &Request) -> String {
    // One message at a time: the conversation may be long, and this is asked at every step.
    const NO_MESSAGES: &str = "\"messages\":[]";
    let mut hasher = Sha256::new();
    let around = canonical(&as_value(&Request {
        messages: Vec::new(),
        tools: request.tools.clone(),
        ..*request
    }));
    let (before, after) = around.split_once(NO_MESSAGES).unwrap_or((&around, ""));
    hasher.update(before);
    hasher.update("\"messages\":[");
    for (i, message) in request.messages.iter().enumerate() {
        if i > 0 {
            hasher.update(",");
        }
        let message = serde_json::to_value(message).unwrap_or(Value::Null);
        hasher.update(canonical(&message));
    }
    hasher.update("]");
    hasher.update(after);
    hex(&hasher.finalize())
}

pub(super) fn as_value(request: &Request) -> Value {
    // Strings, numbers, lists and maps with keys of text: there is nothing that could fail.
    serde_json::to_value(request).unwrap_or(Value::Null)
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let parts: Vec<String> = entries
                .into_iter()
                .map(|(k, v)| format!("{}:{}", Value::String(k.clone()), canonical(v)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        other => other.to_string(),
    }
}

/// The first place where two values differ, as a JSON pointer, with what stands there in each.
pub(super) fn difference(old: &Value, new: &Value, path: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let at = |key: &str| format!("{path}/{key}");
            let changed = a.iter().find_map(|(key, x)| match b.get(key) {
                Some(y) => difference(x, y, &at(key)),
                None => Some(format!("{} is recorded, but absent now", at(key))),
            });
            changed.or_else(|| {
                let added = b.keys().find(|key| !a.contains_key(*key))?;
                Some(format!("{} is new", at(added)))
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).enumerate();
            let changed = pairs
                .filter_map(|(i, (x, y))| difference(x, y, &format!("{path}/{i}")))
                .next();
            changed.or_else(|| {
                (a.len() != b.len())
                    .then(|| format!("{path}: {} entries are recorded, now {}", a.len(), b.len()))
            })
        }
        (Value::String(a), Value::String(b)) if a != b => {
            let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
            let line = a.chars().take(same).filter(|c| *c == '\n').count() + 1;
            Some(format!(
                "{path}, line {line}: recorded {:?}, now {:?}",
                around(a, same),
                around(b, same)
            ))
        }
        _ if old == new => None,
        _ => Some(format!("{path}: recorded {old}, now {new}")),
    }
}

/// A few words around a character.
fn around(text: &str, at: usize) -> String {
    text.chars().skip(at.saturating_sub(20)).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Message;

    #[test]
    fn the_digest_is_that_of_the_canonical_json() {
        let mut request = Request {
            messages: Vec::new(),
            tools: Vec::new(),
            parallel_calls: true,
            temperature: Some(0.5),
            max_tokens: None,
        };
        for content in ["", "\"messages\":[]", "b"] {
            let whole = Sha256::digest(canonical(&as_value(&request)).as_bytes());
            assert_eq!(digest(&request), hex(&whole));
            request.messages.push(Message::User {
                content: content.to_owned(),
            });
        }
    }
}
