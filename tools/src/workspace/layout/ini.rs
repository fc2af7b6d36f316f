//! Reads pytest's options from the file that it would use: `pytest.toml`, `pytest.ini`, `pyproject.toml`, `tox.ini` or
//! `setup.cfg`. The first of these with a section for pytest counts.

use std::collections::BTreeMap;

pub(super) type Options = BTreeMap<String, String>;

/// Names of the files that may hold the options, the most important first.
pub(super) const FILES: [&str; 7] = [
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
];

/// Returns the options of a folder, with those that `addopts` overrides; `None` if none of its files has a section
/// for pytest. `read` returns the text of a file in the folder.
pub(super) fn options(read: &dyn Fn(&str) -> Option<String>) -> Option<Options> {
    let mut options = FILES.iter().find_map(|name| of_file(name, &read(name)?))?;
    for (key, value) in overridden(options.get("addopts").map_or("", String::as_str)) {
        options.insert(key, value);
    }
    Some(options)
}

fn of_file(name: &str, text: &str) -> Option<Options> {
    match name {
        // These count without a section as well.
        "pytest.toml" | ".pytest.toml" => {
            let table: toml::Table = text.parse().ok()?;
            Some(table.get("pytest").and_then(plain).unwrap_or_default())
        }
        "pytest.ini" | ".pytest.ini" => Some(section(text, "pytest").unwrap_or_default()),
        "pyproject.toml" => {
            let table: toml::Table = text.parse().ok()?;
            let pytest = table.get("tool")?.get("pytest")?;
            plain(pytest.get("ini_options").unwrap_or(pytest))
        }
        "setup.cfg" => section(text, "tool:pytest").or_else(|| section(text, "pytest")),
        _ => section(text, "pytest"),
    }
}

/// Converts a table to options in the form of an INI file.
fn plain(table: &toml::Value) -> Option<Options> {
    let text = |value: &toml::Value| match value {
        toml::Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(toml::Value::as_str).collect();
            words.join(" ")
        }
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let options = table.as_table()?.iter();
    Some(options.map(|(k, v)| (k.clone(), text(v))).collect())
}

/// Returns the options that `-o` sets in `addopts`.
fn overridden(addopts: &str) -> Vec<(String, String)> {
    let mut words = addopts.split_whitespace();
    let mut overrides = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word {
            "-o" | "--override-ini" => words.next(),
            _ => (word.strip_prefix("--override-ini=")).or_else(|| word.strip_prefix("-o")),
        };
        if let Some((key, value)) = setting.and_then(|setting| setting.split_once('=')) {
            let value = value.trim_matches(['"', '\'']);
            overrides.push((key.trim_matches(['"', '\'']).to_owned(), value.to_owned()));
        }
    }
    overrides
}

/// Reads one section of a file like Python's `configparser`, with the features that pytest's options need.
fn section(text: &str, section_name: &str) -> Option<Options> {
    let mut section_options: Option<Options> = None;
    let mut inside = false;
    let mut key: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        let continued = line.starts_with([' ', '\t']);
        if let Some(name) = bare.strip_prefix('[').and_then(|l| l.split(']').next())
            && !continued
        {
            inside = name.trim() == section_name;
            key = None;
            if inside {
                section_options.get_or_insert_default();
            }
            continue;
        }
        let Some(options) = section_options.as_mut().filter(|_| inside) else {
            continue;
        };
        let value = bare.split(" #").next().unwrap_or(bare).trim();
        match (&key, continued) {
            (Some(key), true) => {
                let old = options.entry(key.clone()).or_default();
                old.push('\n');
                old.push_str(value);
            }
            _ => {
                if let Some((name, value)) = value.split_once(['=', ':']) {
                    options.insert(name.trim().to_owned(), value.trim().to_owned());
                    key = Some(name.trim().to_owned());
                }
            }
        }
    }
    section_options
}
