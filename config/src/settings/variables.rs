//! Environment variables as a layer: one variable for each key, which override variables shared with other
//! tools.

use std::collections::BTreeMap;

use super::keys::{Key, PREFIX, keys};
use super::layer::{Layer, nearest};
use super::{Origin, sources};
use crate::error::Result;

/// Variables with the prefix of testwright that are not settings. They control builds and tests of testwright
/// itself, name the program `uv`, a settings file, a database or a server with its token, or configure the log.
pub const OTHER_VARIABLES: [(&str, &str); 8] = [
    (
        sources::CONFIG_VARIABLE,
        "A settings file, as with `--config`.",
    ),
    (
        "TESTWRIGHT_REQUIRE_DOCKER",
        "`1`: testwright's own tests fail if Docker is missing, instead of being skipped.",
    ),
    (
        "TESTWRIGHT_UV",
        "Path of the program `uv`, to use instead of the one on `PATH`.",
    ),
    (
        "TESTWRIGHT_LOG",
        "Diagnostics on stderr: a level (`debug`) or a filter (`testwright=debug,hyper=warn`).",
    ),
    (
        "TESTWRIGHT_DATABASE",
        "The database of `serve`, `worker`, `tokens` and `mcp`, as with `--database`. Unlike a flag, it is hidden from other users of the machine.",
    ),
    (
        "TESTWRIGHT_SERVER",
        "The address of the server for `runs`, as with `--server`.",
    ),
    (
        "TESTWRIGHT_TOKEN",
        "The token with which `runs` accesses the server; `testwright tokens create` creates one.",
    ),
    (
        "TESTWRIGHT_LOG_FORMAT",
        "`json`: diagnostics as one JSON object per line, with the time; otherwise text.",
    ),
];

/// Variables shared with other tools, with the key of each; the first that is set counts.
pub const SHARED_VARIABLES: [(&str, &str, &str); 15] = [
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
    ("NO_PROXY", "build", "no-proxy"),
    ("SSL_CERT_FILE", "build", "ca-bundle"),
];

pub(super) fn layer(variables: &BTreeMap<String, String>) -> Result<Layer> {
    let shared = SHARED_VARIABLES.iter().rev();
    let shared = shared.filter_map(|(name, section, key)| {
        let of_name = |k: &&Key| k.section.as_deref() == Some(section) && k.key == *key;
        Some(((*name).to_owned(), keys().iter().find(of_name)?))
    });
    let own = || keys().iter().map(|key| (key.variable(), key));
    let mut layer = Layer::default();
    for (name, key) in shared.chain(own()) {
        if let Some(text) = variables.get(&name).filter(|text| !text.trim().is_empty()) {
            let origin = Origin::Variable(name.clone());
            layer.push(&name, key.path(), key.value(text), origin)?;
        }
    }
    let names = OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned());
    let names: Vec<String> = names.chain(own().map(|(name, _)| name)).collect();
    // Compare in lower case and show upper case: `nearest` expects lower case.
    let lower = names.iter().map(|n| n.to_lowercase().replace('_', "-"));
    let lower: Vec<String> = lower.collect();
    let known_names: Vec<&str> = lower.iter().map(String::as_str).collect();
    let of_program = variables.keys().filter(|name| name.starts_with(PREFIX));
    for name in of_program.filter(|name| !names.contains(name)) {
        let hint = nearest(name, &known_names).map(|n| n.to_uppercase().replace('-', "_"));
        let hint = hint.map_or_else(String::new, |n| format!("; did you mean {n}?"));
        let note = format!("unknown environment variable {name}{hint}");
        layer.notes.push(note);
    }
    Ok(layer)
}
