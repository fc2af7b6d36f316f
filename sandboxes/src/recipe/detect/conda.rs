//! The packages of an environment file of conda, such as `environment.yml`.
//!
//! conda's packages can have other names than those of PyPI. So of these, only plugins of pytest and packages whose module
//! the code imports are installed.

use std::collections::BTreeSet;

use super::{local_lines, package_name, text};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Maximum number of files whose imports are read.
const MAX_FILES: usize = 1000;

/// Packages of conda that have another name on PyPI.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("matplotlib-base", "matplotlib"),
    ("py-xgboost", "xgboost"),
    ("pytables", "tables"),
    ("python-blosc", "blosc"),
    ("python-build", "build"),
    ("python-confluent-kafka", "confluent-kafka"),
    ("python-duckdb", "duckdb"),
    ("python-eccodes", "eccodes"),
    ("python-graphviz", "graphviz"),
    ("python-kaleido", "kaleido"),
    ("python-lmdb", "lmdb"),
    ("python-xxhash", "xxhash"),
    ("pytorch", "torch"),
];

/// Programs and libraries of conda that are named like a module, which they do not contain.
const NO_MODULES: [&str; 7] = [
    "bzip2", "ffmpeg", "git", "graphviz", "readline", "yaml", "zlib",
];

static IMPORT: Pattern =
    Pattern::new(r"(?m)^\s*(?:from\s+(\w+)[\w.]*\s+import\b|import\s+([\w., ]+))");

/// Name, and version limits in the form of conda: `=1.2` means `==1.2.*`.
static PACKAGE: Pattern = Pattern::new(
    r#"^["']?(?:[\w.-]+::)?([A-Za-z][\w.-]*)\s*((?:(?:[<>!~=]=|[<>=])\s*[\d.*]+,?)*)(?:=\w+)?["']?$"#,
);

/// The packages that an environment file installs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CondaEnvironment {
    pub path: String,
    pub requirements: Vec<String>,
    pub files: Vec<String>,
}

/// Returns whether a path is that of an environment file.
pub(super) fn is_environment_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_yaml = name.ends_with(".yml") || name.ends_with(".yaml");
    is_yaml && name.starts_with("environment") && path.matches('/').count() <= 1
}

/// Returns whether an environment file is for building the documentation, which can need another Python than the tests.
pub(super) fn is_for_documentation(path: &str) -> bool {
    path.contains("doc")
}

/// Returns what the environment file for tests or development installs, or the one in the root.
pub(super) fn environment(tree: &Tree) -> Result<CondaEnvironment> {
    let rank = |path: &&str| {
        let is_for = |word: &str| path.contains(word);
        let is_other = is_for_documentation(path) || is_for("build");
        (is_other, !is_for("test"), !is_for("dev"), path.len())
    };
    let paths = tree.paths().filter(|path| is_environment_file(path));
    let Some(path) = paths.min_by_key(rank) else {
        return Ok(CondaEnvironment::default());
    };
    let imported = imported_modules(tree)?;
    let mut environment = CondaEnvironment {
        path: path.to_owned(),
        ..CondaEnvironment::default()
    };
    for (item, is_for_pip) in items(&text(tree, path)?.unwrap_or_default()) {
        environment.add(tree, item, is_for_pip, &imported);
    }
    Ok(environment)
}

impl CondaEnvironment {
    fn add(&mut self, tree: &Tree, item: &str, is_for_pip: bool, imported: &BTreeSet<String>) {
        if !is_for_pip {
            self.requirements.extend(pip_requirement(item, imported));
        } else if let Some(file) = item.strip_prefix("-r") {
            let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let file = local_lines::join(folder, file.trim());
            self.files.extend(file.filter(|file| tree.contains(file)));
        } else if item.starts_with(|c: char| c.is_alphanumeric())
            && !item.contains("://")
            && local_lines::target(item).is_none()
        {
            self.requirements.push(item.to_owned());
        }
    }
}

/// Returns the items of `dependencies`, and whether pip installs them.
fn items(text: &str) -> Vec<(&str, bool)> {
    let mut items = Vec::new();
    let mut is_inside = false;
    let mut indent_of_pip = None;
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or(line).trim_end();
        let item = line.trim_start();
        let indent = line.len() - item.len();
        if item.is_empty() || item.starts_with('#') {
            continue;
        }
        let Some(item) = item.strip_prefix('-').map(str::trim) else {
            is_inside = item.starts_with("dependencies:");
            continue;
        };
        if indent_of_pip.is_some_and(|pip| indent <= pip) {
            indent_of_pip = None;
        }
        if !is_inside {
            continue;
        }
        match item {
            "pip:" => indent_of_pip = Some(indent),
            _ => items.push((item.trim_matches(['"', '\'']), indent_of_pip.is_some())),
        }
    }
    items
}

/// Converts a package of conda to a requirement of pip, if its name is the same for both beyond doubt.
pub(super) fn pip_requirement(item: &str, imported: &BTreeSet<String>) -> Option<String> {
    let parts = PACKAGE.captures(item)?;
    let name = package_name(&parts[1]);
    let other = OTHER_NAMES.iter().find(|(conda, _)| *conda == name);
    if NO_MODULES.contains(&name.as_str()) {
        return None;
    }
    let name = other.map_or(name.clone(), |(_, pypi)| (*pypi).to_owned());
    let plain = squashed(&name);
    let is_imported = ["", "py", "python"].iter().any(|prefix| {
        let module = plain.strip_prefix(prefix);
        module.is_some_and(|module| imported.contains(module))
    });
    let is_plugin = name == "pytest" || name.starts_with("pytest-");
    if !is_imported && !is_plugin {
        return None;
    }
    let limits = parts[2].replace(' ', "");
    let limits = limits.trim_end_matches(',');
    Some(match limits.strip_prefix('=') {
        Some(version) if !version.starts_with('=') => {
            // What follows is a build, or a limit that this version makes superfluous.
            let version = version.split(['=', ',']).next().unwrap_or(version);
            let version = version.trim_end_matches(['*', '.']);
            match version {
                "" => name,
                _ => format!("{name}=={version}.*"),
            }
        }
        _ => format!("{name}{limits}"),
    })
}

/// Returns the modules that the code imports, without separators in their names.
pub(super) fn imported_modules(tree: &Tree) -> Result<BTreeSet<String>> {
    let mut modules = BTreeSet::new();
    let files = tree.paths().filter(|path| path.ends_with(".py"));
    for path in files.take(MAX_FILES) {
        let code = text(tree, path)?.unwrap_or_default();
        for import in IMPORT.captures_iter(&code) {
            let names = import.get(1).or(import.get(2));
            for name in names.map_or("", |names| names.as_str()).split(',') {
                let module = name.trim().split(['.', ' ']).next().unwrap_or_default();
                if !module.is_empty() {
                    modules.insert(squashed(&module.to_lowercase()));
                }
            }
        }
    }
    Ok(modules)
}

fn squashed(name: &str) -> String {
    name.replace(['-', '_'], "")
}

#[cfg(test)]
mod tests;
