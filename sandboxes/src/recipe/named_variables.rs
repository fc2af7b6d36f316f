//! Environment variables that a repository's files set for its tests, with literal values.
//!
//! They are used for variables that turn out to be missing when tests run.

use std::collections::{BTreeMap, BTreeSet};

use super::assignments::assignments;
use super::compose;
use super::detect::text;
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// A value, and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedVariable {
    pub value: String,
    pub file: String,
}

/// A URL of PostgreSQL or Redis, whose host has no domain.
static CONTAINER: Pattern =
    Pattern::new(r"^((?:postgres|redis)[\w+]*://(?:[^@/]*@)?)[A-Za-z][\w-]*(:|/|$)");

/// Common names of containers with databases.
const CONTAINER_NAMES: [&str; 6] = ["db", "database", "postgres", "postgresql", "redis", "cache"];

/// Returns the variables by name. The first file that names a variable counts, so the files closest to tests come
/// first.
pub(crate) fn named_variables(tree: &Tree) -> Result<BTreeMap<String, NamedVariable>> {
    let mut files: Vec<(usize, &str)> = tree
        .paths()
        .filter(|path| path.matches('/').count() < 4)
        .filter_map(|path| Some((rank(path)?, path)))
        .collect();
    files.sort_by_key(|(rank, path)| (*rank, path.matches('/').count(), path.len()));
    let mut all = BTreeMap::new();
    for (_, path) in files {
        for (name, value) in assignments(&compose::expanded(tree, path)?) {
            let value = local_address(&name, &value);
            let file = path.to_owned();
            all.entry(name).or_insert(NamedVariable { value, file });
        }
    }
    Ok(all)
}

/// Maximum number of files to search for a prefix.
const MAX_FILES: usize = 1000;

static PREFIX: Pattern = Pattern::new(r#"\benv_prefix\s*=\s*["'](\w+)["']"#);

/// Returns the prefix, in capitals, of the variables that pydantic's settings read. Empty unless the code has exactly one.
pub(crate) fn settings_prefix(tree: &Tree) -> Result<String> {
    let mut prefixes = BTreeSet::new();
    let files = tree.paths().filter(|path| path.ends_with(".py"));
    for path in files.take(MAX_FILES) {
        let code = text(tree, path)?.unwrap_or_default();
        let captures = PREFIX.captures_iter(&code);
        prefixes.extend(captures.map(|prefix| prefix[1].to_uppercase()));
    }
    let only = prefixes.pop_first().filter(|_| prefixes.is_empty());
    Ok(only.unwrap_or_default())
}

/// Replaces the name of another container by this machine, where a test finds its services.
fn local_address(name: &str, value: &str) -> String {
    if name.ends_with("HOST") && CONTAINER_NAMES.contains(&value) {
        return "localhost".to_owned();
    }
    CONTAINER.replace(value, "${1}localhost$2").into_owned()
}

/// Returns how close a file is to the tests: 0 is closest. `None` for files that set no variables.
pub(super) fn rank(path: &str) -> Option<usize> {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let is_yaml = name.ends_with(".yml") || name.ends_with(".yaml");
    // A template of Django projects has a folder `.envs/.local`.
    let is_in_folder = lower.contains(".envs/") && !lower.contains("prod");
    let is_env = name.starts_with(".env")
        || name.ends_with(".env")
        || name.starts_with("env.")
        || name == ".flaskenv"
        || is_in_folder;
    if ["pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"].contains(&lower.as_str()) {
        Some(0)
    } else if is_env && name.contains("test") {
        Some(1)
    } else if lower.starts_with(".github/workflows/") && is_yaml
        || [
            ".gitlab-ci.yml",
            ".travis.yml",
            ".circleci/config.yml",
            "noxfile.py",
        ]
        .contains(&lower.as_str())
    {
        Some(2)
    } else if is_env {
        Some(3)
    } else if name == "makefile" || name == "justfile" || name.ends_with(".sh") {
        Some(4)
    } else if is_yaml && name.contains("compose") {
        Some(5)
    } else if name.starts_with("dockerfile") || name == "app.json" {
        Some(6)
    } else if name.starts_with("readme") || name.starts_with("contributing") {
        Some(7)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_of_containers_become_local() {
        for (name, value, expected) in [
            (
                "DB_URL",
                "postgres://u:p@db:5432/x",
                "postgres://u:p@localhost:5432/x",
            ),
            ("REDIS_URL", "redis://cache/0", "redis://localhost/0"),
            ("REDIS_HOST", "redis", "localhost"),
            ("CACHE", "redis", "redis"),
            ("DB_URL", "postgres://u@db.example.org/x", ""),
        ] {
            let expected = if expected.is_empty() { value } else { expected };
            assert_eq!(local_address(name, value), expected, "{value}");
        }
    }

    #[test]
    fn files_of_tests_rank_first() {
        let ranks = [
            "tox.ini",
            ".env.test",
            ".github/workflows/ci.yml",
            ".env.example",
            "Makefile",
            "docker-compose.yml",
            "Dockerfile",
            "README.md",
        ];
        let ranks: Vec<usize> = ranks.iter().map(|path| rank(path).unwrap()).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(rank("src/environment.py"), None);
        assert_eq!(rank(".envs/.local/.django"), rank(".env.example"));
        assert_eq!(rank(".envs/.production/.django"), None);
    }
}
