//! Reads pytest's options from the file that it would use: `pytest.ini`, `pyproject.toml`, `tox.ini` or
//! `setup.cfg`. The first of these with a section for pytest counts.

use std::collections::BTreeMap;

pub(super) type Options = BTreeMap<String, String>;

/// Returns the options. `read` returns the text of a file in the repository's root.
pub(super) fn options(read: &dyn Fn(&str) -> Option<String>) -> Options {
    for name in ["pytest.ini", ".pytest.ini"] {
        if let Some(text) = read(name) {
            return section(&text, "pytest").unwrap_or_default();
        }
    }
    if let Some(found) = read("pyproject.toml").as_deref().and_then(pyproject) {
        return found;
    }
    let files: [(&str, &[&str]); 2] = [
        ("tox.ini", &["pytest"]),
        ("setup.cfg", &["tool:pytest", "pytest"]),
    ];
    for (file, sections) in files {
        if let Some(text) = read(file)
            && let Some(found) = sections.iter().find_map(|s| section(&text, s))
        {
            return found;
        }
    }
    Options::new()
}

fn pyproject(text: &str) -> Option<Options> {
    let table: toml::Table = text.parse().ok()?;
    let pytest = table.get("tool")?.get("pytest")?;
    let options = pytest.get("ini_options").unwrap_or(pytest).as_table()?;
    let plain = |value: &toml::Value| match value {
        toml::Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(toml::Value::as_str).collect();
            words.join(" ")
        }
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(options.iter().map(|(k, v)| (k.clone(), plain(v))).collect())
}

/// Reads one section of a file like Python's `configparser`, with the features that pytest's options need.
fn section(text: &str, wanted: &str) -> Option<Options> {
    let mut found: Option<Options> = None;
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
            inside = name.trim() == wanted;
            key = None;
            if inside {
                found.get_or_insert_default();
            }
            continue;
        }
        let Some(options) = found.as_mut().filter(|_| inside) else {
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
    found
}
