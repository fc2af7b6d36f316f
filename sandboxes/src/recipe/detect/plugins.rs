//! pytest plugins that the repository's own configuration of pytest requires.

use super::Files;

/// Words in the configuration, and the plugin that understands them.
const KNOWN: [(&str, &str); 15] = [
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
    ("env =", "pytest-env"),
];

pub(super) fn required(files: &Files) -> Vec<&'static str> {
    let settings = files.pytest_settings();
    let lines = settings
        .iter()
        .map(|(key, value)| format!(" {key} = {value}\n"));
    let text: String = lines.collect();
    let mut plugins = Vec::new();
    for (sign, plugin) in KNOWN {
        if text.contains(&format!(" {sign}")) && !plugins.contains(&plugin) {
            plugins.push(plugin);
        }
    }
    plugins
}
