//! Environment variables that a repository's files set for its tests, with literal values.
//!
//! They are used for variables that turn out to be missing when tests run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::compose;
use crate::repository::Tree;
use crate::sandbox::Result;

/// A value, and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedVariable {
    pub value: String,
    pub file: String,
}

/// `NAME=value` or `NAME: value`, as in shell scripts, .env files, YAML, tox.ini and Dockerfiles.
static ASSIGNMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?m)^\s*(?:export |set |ENV |- |["'])*([A-Z][A-Z0-9_]{2,})\s*[=:]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'#,]+))["']?,?\s*(?:#.*)?$"#,
    )
    .ok()
});

/// Assignments before a command, as in `NAME=value pytest`.
static BEFORE_COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"\b([A-Z][A-Z0-9_]{2,})=["']?([^\s"'$`]+)["']?\s+(?:\S+=\S+\s+)*(?:python|pytest|py\.test|coverage|tox|flask|\./manage|uv|poetry)"#).ok()
});

/// A URL of PostgreSQL or Redis, whose host has no domain.
static CONTAINER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^((?:postgres|redis)[\w+]*://(?:[^@/]*@)?)[A-Za-z][\w-]*(:|/|$)").ok()
});

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

/// Returns the variables that a text sets, with literal values.
pub(super) fn assignments(text: &str) -> Vec<(String, String)> {
    let patterns = [&ASSIGNMENT, &BEFORE_COMMAND].into_iter();
    let captures = patterns
        .filter_map(|pattern| pattern.as_ref())
        .flat_map(|pattern| pattern.captures_iter(text));
    let assignment = |captures: Captures<'_>| {
        let value = captures.iter().skip(2).flatten().next()?.as_str().trim();
        // Values that refer to others, or that a person must fill in, are of no use.
        let is_useless =
            value.is_empty() || value.contains(['$', '{', '<', '`']) || is_block_scalar(value);
        (!is_useless).then(|| (captures[1].to_owned(), value.to_owned()))
    };
    captures.filter_map(assignment).collect()
}

/// Replaces the name of another container by this machine, where a test finds its services.
fn local_address(name: &str, value: &str) -> String {
    match CONTAINER.as_ref() {
        Some(url) if url.is_match(value) => url.replace(value, "${1}localhost$2").into_owned(),
        _ if name.ends_with("HOST") && CONTAINER_NAMES.contains(&value) => "localhost".to_owned(),
        _ => value.to_owned(),
    }
}

/// Returns whether a value only starts a text on the next lines of a YAML file.
fn is_block_scalar(value: &str) -> bool {
    value.starts_with(['|', '>']) && value.len() <= 2
}

/// Returns how close a file is to the tests: 0 is closest. `None` for files that set no variables.
pub(super) fn rank(path: &str) -> Option<usize> {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let is_yaml = name.ends_with(".yml") || name.ends_with(".yaml");
    let is_env = name.starts_with(".env")
        || name.ends_with(".env")
        || name.starts_with("env.")
        || name == ".flaskenv";
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
    fn assignments_are_recognised() {
        for (line, value) in [
            ("NAME=localhost", "localhost"),
            ("export NAME=\"a b\"", "a b"),
            (
                "        NAME: 'postgres://x:y@localhost/z'",
                "postgres://x:y@localhost/z",
            ),
            ("      - NAME=1  # why", "1"),
            ("    NAME = a.b", "a.b"),
            ("ENV NAME=x", "x"),
            ("    \"NAME=x\",", "x"),
        ] {
            let captures = ASSIGNMENT.as_ref().unwrap().captures(line);
            let value_of = |c: regex::Captures<'_>| {
                c.iter()
                    .skip(2)
                    .flatten()
                    .next()
                    .map(|m| m.as_str().to_owned())
            };
            assert_eq!(
                captures.and_then(value_of).as_deref(),
                Some(value),
                "{line}"
            );
        }
        let command = BEFORE_COMMAND
            .as_ref()
            .unwrap()
            .captures("\tA_B=1 NAME=x pytest tests")
            .unwrap();
        assert_eq!((&command[1], &command[2]), ("A_B", "1"));
    }

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
    }
}
