//! The environment as a layer: our own variables, one for each key, over those that other tools share.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value as Json;
use toml::Value;

use super::layer::{Layer, nearest};
use super::{Origin, Settings};
use crate::error::Result;

/// A setting that a variable can hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub section: Option<String>,
    pub key: String,
    /// What it means, in a sentence.
    pub help: String,
    types: Vec<String>,
}

impl Key {
    pub fn variable(&self) -> String {
        let section = self.section.as_deref().filter(|s| *s != "run");
        let path = section.map_or_else(|| self.key.clone(), |s| format!("{s}_{}", self.key));
        format!("{PREFIX}{}", path.replace('-', "_").to_uppercase())
    }

    fn path(&self) -> Vec<String> {
        self.section.iter().chain([&self.key]).cloned().collect()
    }

    /// The text as the type asks; text that does not fit stays text, and is refused with the reason later.
    fn value(&self, text: &str) -> Value {
        let has = |name: &str| self.types.iter().any(|t| t == name);
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

const PREFIX: &str = "TESTWRIGHT_";

/// Variables with our prefix that are no settings: they steer builds and tests of testwright itself, name the program
/// `uv` or a settings file, or set the log.
const OTHERS: [&str; 4] = [
    super::sources::CONFIG,
    "TESTWRIGHT_REQUIRE_DOCKER",
    "TESTWRIGHT_UV",
    "TESTWRIGHT_LOG",
];

/// Variables that other tools share, and the key of each; the first that is set counts.
const SHARED: [(&str, &str, &str); 14] = [
    ("OPENAI_MODEL", "run", "model"),
    ("OPENAI_BASE_URL", "model", "base-url"),
    ("DOCKER_HOST", "docker", "host"),
    ("UV_DEFAULT_INDEX", "build", "index-url"),
    ("UV_INDEX_URL", "build", "index-url"),
    ("PIP_INDEX_URL", "build", "index-url"),
    ("UV_EXTRA_INDEX_URL", "build", "extra-index-urls"),
    ("PIP_EXTRA_INDEX_URL", "build", "extra-index-urls"),
    ("https_proxy", "build", "https-proxy"),
    ("HTTPS_PROXY", "build", "https-proxy"),
    ("http_proxy", "build", "http-proxy"),
    ("HTTP_PROXY", "build", "http-proxy"),
    ("no_proxy", "build", "no-proxy"),
    ("SSL_CERT_FILE", "build", "ca-bundle"),
];

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(read_keys);

/// All settings that a variable can hold, in the order of their definition.
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
                keys.extend(
                    inner
                        .iter()
                        .map(|(key, value)| read_key(Some(&name), key, value)),
                );
            }
            None if name == "environment" || name == "prices" => {}
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

pub(super) fn layer(
    variables: &BTreeMap<String, String>,
    notes: &mut Vec<String>,
) -> Result<Layer> {
    let mut layer = Layer::default();
    let set = |name: &str| variables.get(name).filter(|v| !v.trim().is_empty());
    for (name, section, key) in SHARED.iter().rev() {
        let Some(text) = set(name) else { continue };
        let known = keys()
            .iter()
            .find(|k| k.section.as_deref() == Some(section) && k.key == *key);
        if let Some(key) = known {
            push(&mut layer, key, name, text)?;
        }
    }
    let mut names: Vec<String> = OTHERS.iter().map(|&n| n.to_owned()).collect();
    for key in keys() {
        let name = key.variable();
        if let Some(text) = set(&name) {
            push(&mut layer, key, &name, text)?;
        }
        names.push(name);
    }
    for name in variables
        .keys()
        .filter(|n| n.starts_with(PREFIX) && !names.contains(n))
    {
        // In upper case on both sides: `nearest` compares in lower case.
        let lower: Vec<String> = names
            .iter()
            .map(|n| n.to_lowercase().replace('_', "-"))
            .collect();
        let known: Vec<&str> = lower.iter().map(String::as_str).collect();
        let hint = nearest(name, &known).map(|n| n.to_uppercase().replace('-', "_"));
        let hint = hint.map_or_else(String::new, |n| format!("; did you mean {n}?"));
        notes.push(format!(
            "the environment variable {name} means nothing here{hint}"
        ));
    }
    Ok(layer)
}

fn push(layer: &mut Layer, key: &Key, name: &str, text: &str) -> Result<()> {
    layer.push(
        name,
        key.path(),
        key.value(text),
        Origin::Variable(name.to_owned()),
    )
}
