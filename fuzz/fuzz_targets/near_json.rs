//! JSON as written by models. Strict JSON must be read unchanged, and everything read can be written and read again.
#![no_main]

use serde_json::Value;
use testwright_fuzz::bounded_target;
use testwright_models::near_json;

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let whole = near_json::read(text, true);
    if let Ok(strict) = serde_json::from_str::<Value>(text) {
        assert_eq!(whole.as_ref().ok(), Some(&strict));
    }
    if let Ok(value) = &whole
        && !has_fraction(value)
    {
        let again = near_json::read(&value.to_string(), false);
        assert_eq!(again.ok().as_ref(), Some(value));
    }
    match near_json::prefix(text, false) {
        Ok(prefix) => assert!(text.is_char_boundary(prefix.end)),
        Err(problem) => {
            assert!(problem.line <= text.len() + 1 && problem.message.len() < text.len() + 200);
        }
    }
    // A truncated reply must give the same values as the complete one.
    if let Ok(cut) = near_json::read(text, false) {
        assert_eq!(whole.ok(), Some(cut));
    }
});

/// Returns whether a value contains a fraction, whose last digit may change when it is read and written.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(map) => map.values().any(has_fraction),
        _ => false,
    }
}
