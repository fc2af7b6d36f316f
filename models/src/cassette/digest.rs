//! Digests of requests, and the first difference between two requests.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Request;
use testwright_config::hex::hex;

/// Returns the SHA-256 of the request's canonical JSON (keys sorted, no white space), in hexadecimal.
pub fn digest(request: &Request) -> String {
    // Messages are hashed one at a time: the conversation may be long, and every step needs a digest.
    const NO_MESSAGES: &str = "\"messages\":[]";
    let mut hasher = Sha256::new();
    let around = canonical(as_value(&Request {
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
        hasher.update(canonical(
            serde_json::to_value(message).unwrap_or(Value::Null),
        ));
    }
    hasher.update("]");
    hasher.update(after);
    hex(&hasher.finalize())
}

pub(super) fn as_value(request: &Request) -> Value {
    // Requests consist of strings, numbers, lists and maps with string keys, so serialization cannot fail.
    serde_json::to_value(request).unwrap_or(Value::Null)
}

fn canonical(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// Returns the first place where two values differ: a JSON pointer, and the line within a text. Recorded
/// content is not quoted, because clients read the result.
pub(super) fn difference(old: &Value, new: &Value, path: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys());
            keys.into_iter().find_map(|key| {
                let (a, b) = (a.get(key), b.get(key));
                let at = format!("{path}/{key}");
                match (a, b) {
                    (Some(a), Some(b)) => difference(a, b, &at),
                    // A key that only the recording has is recorded content.
                    (Some(_), None) => Some(path.to_owned()),
                    (None, _) => Some(at),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let mut pairs = a.iter().zip(b).enumerate();
            let changed = pairs.find_map(|(i, (x, y))| difference(x, y, &format!("{path}/{i}")));
            changed.or_else(|| {
                (a.len() != b.len())
                    .then(|| format!("{path}, {} entries recorded and {} now", a.len(), b.len()))
            })
        }
        (Value::String(a), Value::String(b)) if a != b => {
            let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y);
            let line = same.filter(|(c, _)| *c == '\n').count() + 1;
            Some(format!("{path}, line {line}"))
        }
        _ => (old != new).then(|| path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    #[test]
    fn digest_hashes_canonical_json() {
        let mut request = Request {
            messages: Vec::new(),
            tools: Vec::new(),
            parallel_calls: true,
            temperature: Some(0.5),
            max_tokens: None,
        };
        for content in ["", "\"messages\":[]", "b"] {
            let whole = Sha256::digest(canonical(as_value(&request)).as_bytes());
            assert_eq!(digest(&request), hex(&whole));
            request.messages.push(Message::User {
                content: content.to_owned(),
            });
        }
    }
}
