//! All packages that a repository's files name, with their version limits.
//!
//! They are used for packages that turn out to be missing when tests run. [`super::detect`] decides what is installed
//! first.

use std::collections::BTreeMap;

use toml::Value;

use super::detect::{package_name, text};
use super::ini::Ini;
use super::setup_py::{self, Literal};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Returns the requirements by the normalized name of their package.
///
/// The first file that names a package counts, so the files are read in order of reliability.
pub(crate) fn named_requirements(tree: &Tree) -> Result<BTreeMap<String, String>> {
    let mut all = RequirementSet::default();
    let text = |path: &str| text(tree, path);
    let mut paths: Vec<&str> = tree
        .paths()
        .filter(|path| path.matches('/').count() < 7)
        .collect();
    paths.sort_by_key(|path| path.len());
    for path in paths.iter().filter(|path| is_requirements_file(path)) {
        for line in text(path)?.unwrap_or_default().lines() {
            all.add(line);
        }
    }
    for (path, below) in [
        ("pyproject.toml", false),
        ("pixi.toml", false),
        ("Pipfile", true),
    ] {
        let table: toml::Table = text(path)?.unwrap_or_default().parse().unwrap_or_default();
        all.toml(&Value::Table(table), below);
    }
    let setup_cfg = Ini::parse(&text("setup.cfg")?.unwrap_or_default());
    let own = ["install_requires", "tests_require"].map(|key| ("options", key));
    let extras = "options.extras_require";
    let extras = setup_cfg.keys(extras).map(|key| (extras, key));
    for (section, key) in own.into_iter().chain(extras) {
        let lines = setup_cfg.requirements(section, key);
        lines.iter().for_each(|line| all.add(line));
    }
    let setup_py = text("setup.py")?.unwrap_or_default();
    for name in ["install_requires", "tests_require", "extras_require"] {
        let lines: Vec<String> = match setup_py::literal(&setup_py, name) {
            Some(Literal::Dict(table)) => table.values().flat_map(Literal::texts).collect(),
            literal => literal.iter().flat_map(Literal::texts).collect(),
        };
        lines.iter().for_each(|line| all.add(line));
    }
    let tox = Ini::parse(&text("tox.ini")?.unwrap_or_default());
    for section in tox.sections() {
        for line in tox.list(section, "deps") {
            all.add(without_factor(&line));
        }
    }
    for path in paths.iter().filter(|path| INSTALLING.is_match(path)) {
        let text = text(path)?.unwrap_or_default();
        for command in INSTALL.captures_iter(&text) {
            let words = command[1].split(|c: char| c.is_whitespace() || ",()\"'".contains(c));
            words.for_each(|word| all.add(word));
        }
    }
    for path in paths.iter().filter(|path| is_conda_file(path)) {
        for line in text(path)?.unwrap_or_default().lines() {
            if let Some(item) = line.trim().strip_prefix("- ") {
                // conda writes version limits differently from pip.
                all.add(&package_name(item));
            }
        }
    }
    Ok(all.0)
}

static INSTALL: Pattern = Pattern::new(r"(?:pip3?|session|uv pip)[ .]install\b([^\n;&|]*)");

fn is_requirements_file(path: &str) -> bool {
    let lower = path.to_lowercase();
    (lower.ends_with(".txt") || lower.ends_with(".in")) && lower.contains("require")
}

/// Files whose commands install packages.
static INSTALLING: Pattern = Pattern::new(concat!(
    r"^(?:\.github/.*ml|noxfile\.py|\.travis\.yml|\.circleci/config\.yml|azure-pipelines\.yml|appveyor\.yml",
    "|Makefile)$",
));

fn is_conda_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("environment") && (name.ends_with(".yml") || name.ends_with(".yaml"))
}

/// Removes the factor of a tox line: `py38,py39: mock` becomes `mock`.
fn without_factor(line: &str) -> &str {
    match line.split_once(':') {
        Some((factor, rest)) if !factor.contains(['>', '=', '<', '@']) => rest.trim(),
        _ => line,
    }
}

#[derive(Default)]
struct RequirementSet(BTreeMap<String, String>);

impl RequirementSet {
    fn add(&mut self, line: &str) {
        let line = line.split(" #").next().unwrap_or(line);
        let line = line.split(';').next().unwrap_or(line).trim();
        let Some(captures) = REQUIREMENT.captures(line) else {
            return;
        };
        let bounds = captures.get(3).map_or("", |bounds| bounds.as_str());
        let extras = captures.get(2).map_or("", |extras| extras.as_str());
        let requirement = format!("{}{extras}{bounds}", &captures[1]);
        self.0
            .entry(package_name(&captures[1]))
            .or_insert(requirement);
    }

    /// Adds all strings below keys such as `dependencies`, `optional-dependencies` and `dependency-groups`, and below
    /// the tables of Poetry, Hatch and PDM.
    fn toml(&mut self, value: &Value, below: bool) {
        match value {
            Value::String(text) if below => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.toml(item, below)),
            Value::Table(table) => {
                for (key, value) in table {
                    let below = below || key.contains("dependenc") || key == "requires";
                    // Poetry writes `name = "^1.2"`.
                    if below && !matches!(value, Value::Array(_)) {
                        self.add(key);
                    }
                    if !matches!(value, Value::String(_)) {
                        self.toml(value, below);
                    }
                }
            }
            _ => {}
        }
    }
}

static REQUIREMENT: Pattern = Pattern::new(
    r"^([A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z])\s*(\[[\w, .-]*\])?\s*\(?((?:\s*,?\s*(?:[<>=!~]=?=?)\s*[\w.*+!-]+)*)\)?$",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_lines_are_recognized() {
        let mut all = RequirementSet::default();
        for line in [
            "trio>=0.20  # for tests",
            "PyYAML ; python_version < '3.8'",
            "pytest_httpbin[x] >= 1, < 3",
            "-r other.txt",
            "git+https://example.org/x.git",
            "two words",
            "",
        ] {
            all.add(line);
        }
        let expected = [
            ("pytest-httpbin", "pytest_httpbin[x]>= 1, < 3"),
            ("pyyaml", "PyYAML"),
            ("trio", "trio>=0.20"),
        ];
        let expected = expected.map(|(name, line)| (name.to_owned(), line.to_owned()));
        assert_eq!(all.0.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(without_factor("py38,py39: mock"), "mock");
        assert_eq!(without_factor("mock>=1:2"), "mock>=1:2");
    }
}
