//! The settings that an environment variable can hold, read from their definition.

use std::sync::LazyLock;

use serde_json::Value as Json;
use toml::Value;

use super::Settings;

/// Prefix of the environment variables of testwright.
pub(super) const PREFIX: &str = "TESTWRIGHT_";

/// A setting that an environment variable can hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Section of the settings file; `None` for a key at the top level.
    pub section: Option<String>,
    /// Key in its section, in kebab case.
    pub key: String,
    /// Meaning of the setting, in one sentence.
    pub help: String,
    /// JSON types; several if the value is optional.
    pub types: Vec<String>,
}

impl Key {
    /// Returns the name of the environment variable.
    pub fn variable(&self) -> String {
        let section = self.section.as_deref().filter(|s| *s != "run");
        let path = section.map_or_else(|| self.key.clone(), |s| format!("{s}_{}", self.key));
        format!("{PREFIX}{}", path.replace('-', "_").to_uppercase())
    }

    /// Returns the path of the key: the section, if there is one, and the key.
    pub(super) fn path(&self) -> Vec<String> {
        self.section.iter().chain([&self.key]).cloned().collect()
    }

    /// Converts text to the type of the key. Text that does not fit stays text, and is rejected later with
    /// the reason.
    pub(super) fn value(&self, text: &str) -> Value {
        let has = |name: &str| self.types.iter().any(|t| t == name);
        if has("object")
            && let Ok(table) = serde_json::from_str(text)
        {
            return table;
        }
        if has("array") {
            let parts = text.split([',', ' ', '\n']).filter(|p| !p.is_empty());
            return Value::Array(parts.map(|p| Value::String(p.to_owned())).collect());
        }
        let text = text.trim();
        let number = if has("integer") {
            text.parse().ok().map(Value::Integer)
        } else if has("number") {
            text.parse().ok().map(Value::Float)
        } else if has("boolean") {
            match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Some(Value::Boolean(true)),
                "0" | "false" | "no" | "off" => Some(Value::Boolean(false)),
                _ => None,
            }
        } else {
            None
        };
        number.unwrap_or_else(|| Value::String(text.to_owned()))
    }
}

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(read_keys);

/// Returns all settings that an environment variable can hold, in the order of their definition.
pub fn keys() -> &'static [Key] {
    &KEYS
}

fn read_keys() -> Vec<Key> {
    let generator =
        schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let schema = generator
        .into_generator()
        .into_root_schema_for::<Settings>();
    let mut keys = Vec::new();
    let properties = |schema: &Json| schema.get("properties").and_then(Json::as_object).cloned();
    for (name, value) in properties(schema.as_value()).unwrap_or_default() {
        match properties(&value) {
            Some(inner) => {
                let inner = inner.iter();
                keys.extend(inner.map(|(key, value)| read_key(Some(&name), key, value)));
            }
            None if ["environment", "prices", "model-limits"].contains(&name.as_str()) => {}
            None => keys.push(read_key(None, &name, &value)),
        }
    }
    keys
}

fn read_key(section: Option<&str>, key: &str, schema: &Json) -> Key {
    let types = match schema.get("type") {
        Some(Json::String(one)) => vec![one.clone()],
        Some(Json::Array(several)) => several
            .iter()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    let help = schema
        .get("description")
        .and_then(Json::as_str)
        .unwrap_or_default();
    Key {
        section: section.map(str::to_owned),
        key: key.to_owned(),
        help: help.to_owned(),
        types,
    }
}
