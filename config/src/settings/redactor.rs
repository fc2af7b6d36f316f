//! Removes secrets from text of others, in the forms in which a server may send them back.
//!
//! It cannot find a secret that is split into pieces, or changed in a way that is not listed here.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

use crate::hex::hex;

/// Replacement for a secret.
pub const MASK: &str = "***";

/// Minimum length of a secret; shorter ones would match ordinary words.
const MIN_SECRET_LEN: usize = 6;

/// Minimum length of a Base64 form; shorter ones would match ordinary text.
const MIN_BASE64_LEN: usize = 12;

/// The secrets to hide, in the forms in which they appear.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redactor {
    /// Forms of the secrets, the longest first.
    forms: Vec<String>,
}

impl Redactor {
    /// Creates a redactor for these secrets. Secrets shorter than 6 bytes are ignored.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut forms: Vec<String> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= MIN_SECRET_LEN)
            .flat_map(forms)
            .collect();
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Redactor { forms }
    }

    /// Returns the text with every secret replaced by [`MASK`].
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = Cow::Owned(text.replace(form.as_str(), MASK));
            }
        }
        text
    }

    /// Redacts the text in place.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = self.text(text) {
            *text = cleaned;
        }
    }

    /// Redacts every string in a JSON value, including field names.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(fields) => {
                if fields
                    .keys()
                    .any(|name| matches!(self.text(name), Cow::Owned(_)))
                {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(name, value)| (self.text(&name).into_owned(), value))
                        .collect();
                }
                fields.values_mut().for_each(|value| self.json(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

fn forms(secret: &str) -> Vec<String> {
    let escaped = Value::from(secret).to_string();
    let escaped = escaped.trim_matches('"').to_owned();
    let percent = |lower: bool| -> String {
        let encode = |byte: u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ if lower => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        };
        secret.bytes().map(encode).collect()
    };
    let hex = hex(secret.as_bytes());
    let mut forms = vec![
        secret.to_owned(),
        escaped.replace('/', "\\/"),
        escaped,
        percent(true),
        percent(false),
        hex.to_uppercase(),
        hex,
    ];
    // Base64 depends on the position in a group of three bytes, so take each; characters that depend on
    // neighbours are cut.
    for before in 0..3 {
        let bytes = [&[0; 2][..before], secret.as_bytes()].concat();
        let (start, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for engine in [STANDARD, URL_SAFE] {
            if let Some(inner) = engine.encode(&bytes).get(start..end)
                && inner.len() >= MIN_BASE64_LEN
            {
                forms.push(inner.to_owned());
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-pa55/word+\"x\"%";

    #[test]
    fn secret_is_redacted_in_every_form() {
        let redactor = Redactor::new([KEY, "", "short"]);
        let basic = STANDARD.encode(format!("user:{KEY}"));
        let shifted = URL_SAFE.encode(format!("Bearer {KEY} and more"));
        for text in [
            KEY.to_owned(),
            Value::from(KEY).to_string(),
            "sk-pa55%2Fword%2B%22x%22%25".to_owned(),
            "sk-pa55%2fword%2b%22x%22%25".to_owned(),
            basic,
            shifted,
            STANDARD.encode(KEY),
            "736B2D706135352F776F72642B2278222".to_owned() + "5",
        ] {
            let cleaned = redactor.text(&text).into_owned();
            assert!(cleaned.contains(MASK), "{text}: {cleaned}");
            assert!(!cleaned.contains("pa55"), "{text}: {cleaned}");
        }
        assert_eq!(redactor.text("a short text"), "a short text");
        assert!(!format!("{redactor:?}").contains("pa55"));
    }

    #[test]
    fn json_values_and_names_are_redacted() {
        let redactor = Redactor::new([KEY]);
        let mut value = serde_json::json!({"a": [KEY, 1], KEY: {"b": format!("x {KEY}")}});
        redactor.json(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"a": [MASK, 1], MASK: {"b": "x ***"}})
        );
    }
}
