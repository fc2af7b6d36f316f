//! pytest plugins without which the repository's own configuration of pytest is refused.

use super::Files;

/// What stands in the configuration, and the plugin that understands it.
const KNOWN: [(&str, &str); 14] = [
    ("--cov", "pytest-cov"),
    ("--numprocesses", "pytest-xdist"),
    ("-n ", "pytest-xdist"),
    ("--dist", "pytest-xdist"),
    ("--timeout", "pytest-timeout"),
    ("timeout =", "pytest-timeout"),
    ("--benchmark", "pytest-benchmark"),
    ("asyncio_mode", "pytest-asyncio"),
    ("--doctest-plus", "pytest-doctestplus"),
    ("--random-order", "pytest-random-order"),
    ("--reruns", "pytest-rerunfailures"),
    ("--mpl", "pytest-mpl"),
    ("--flake8", "pytest-flake8"),
    ("--isort", "pytest-isort"),
];

pub(super) fn wanted(files: &Files) -> Vec<&'static str> {
    let mut text = String::new();
    let inis = [
        (&files.pytest_ini, "pytest"),
        (&files.setup_cfg, "tool:pytest"),
        (&files.setup_cfg, "pytest"),
        (&files.tox, "pytest"),
    ];
    for (ini, section) in inis {
        for key in ini.keys(section) {
            text.push_str(&format!(
                " {key} = {}\n",
                ini.get(section, key).unwrap_or_default()
            ));
        }
    }
    let pytest = files.pyproject.get("tool").and_then(|t| t.get("pytest"));
    if let Some(options) = pytest
        .and_then(|p| p.get("ini_options"))
        .and_then(toml::Value::as_table)
    {
        for (key, value) in options {
            // Lists of options are written as one string here.
            let value = match value {
                toml::Value::Array(items) => items
                    .iter()
                    .filter_map(toml::Value::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            text.push_str(&format!(" {key} = {value}\n"));
        }
    }
    let mut plugins = Vec::new();
    for (sign, plugin) in KNOWN {
        if text.contains(&format!(" {sign}")) && !plugins.contains(&plugin) {
            plugins.push(plugin);
        }
    }
    plugins
}
