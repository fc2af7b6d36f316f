//! Untrusted text for a terminal. No control sequence must pass, and no secret (the second part, divided by the byte
//! 0xff).
#![no_main]

use serde_json::Value;
use testwright::cli::output::{escape, escape_line};
use testwright_config::settings::Redactor;
use testwright_fuzz::{bounded_target, texts};

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let [Some(text), secret] = texts(data) else {
        return;
    };
    let shown = escape(&text);
    let lines = shown.replace("\r\n", "\n");
    assert!(!lines.chars().any(|c| is_control(c) && c != '\n' && c != '\t'), "{shown:?}");
    let line = escape_line(&text);
    assert!(!line.chars().any(|c| is_control(c) && c != '\t'), "{line:?}");
    // Each hidden character becomes at most ten characters.
    assert!(shown.len() <= 10 * text.len());
    let secret = secret.unwrap_or_default();
    let secret = secret.trim();
    if secret.len() < 6 || secret.contains('*') {
        return;
    }
    let redactor = Redactor::new([secret]);
    assert!(!redactor.text(&text).contains(secret));
    let mut value = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.clone()));
    redactor.json(&mut value);
    let mut open = vec![&value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => assert!(!text.contains(secret)),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                assert!(fields.keys().all(|name| !name.contains(secret)));
                open.extend(fields.values());
            }
            _ => {}
        }
    }
});
