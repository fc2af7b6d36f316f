//! The files that contain tests, by their names and by pytest's configuration.

use std::sync::LazyLock;

use regex::Regex;

use super::{Files, text};
use crate::repository::Tree;
use crate::sandbox::Result;

/// pytest's own patterns, and the file name that tutorials of Flask and Django use.
const WITH_TESTS_PY: &str = "test_*.py *_test.py tests.py";

static TEST_CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)TestCase\)|^\s*(?:import|from)\s+(?:unittest|pytest|django\.test)\b").ok()
});

/// Returns the files that contain tests according to their names. If pytest is configured to search only some folders,
/// only files in those are returned.
pub(crate) fn test_files(tree: &Tree) -> Result<Vec<String>> {
    let files = Files::read(tree)?;
    let mut all: Vec<&str> = tree.paths().filter(|path| is_named(path)).collect();
    all.extend(tests_py(tree)?);
    all.sort_unstable();
    let settings = files.pytest_settings();
    let folders = settings.iter().find(|(key, _)| key == "testpaths");
    let folders = folders.map_or("", |(_, folders)| folders.as_str());
    let folders: Vec<&str> = folders
        .split_whitespace()
        .map(|folder| folder.trim_matches(['"', '/']))
        .collect();
    let below = |path: &&str| {
        let inside = |rest: &str| rest.is_empty() || rest.starts_with('/');
        folders
            .iter()
            .any(|folder| path.strip_prefix(folder).is_some_and(inside))
    };
    let chosen: Vec<&str> = all.iter().copied().filter(below).collect();
    let chosen = if chosen.is_empty() { all } else { chosen };
    Ok(chosen.into_iter().map(str::to_owned).collect())
}

fn is_named(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    (name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py")
}

/// Returns the files called `tests.py` that define tests.
fn tests_py(tree: &Tree) -> Result<Vec<&str>> {
    let mut paths = Vec::new();
    let is_called = |path: &&str| path.rsplit('/').next() == Some("tests.py");
    for path in tree.paths().filter(is_called) {
        let code = text(tree, path)?.unwrap_or_default();
        let has_tests = TEST_CODE
            .as_ref()
            .is_some_and(|tests| tests.is_match(&code));
        if has_tests && code.contains("def test") {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Returns the option that makes pytest collect `tests.py`, if the project has such files and no patterns of its own.
pub(super) fn tests_py_option(tree: &Tree, files: &Files) -> Result<Option<String>> {
    let settings = files.pytest_settings();
    if settings.iter().any(|(key, _)| key == "python_files") || tests_py(tree)?.is_empty() {
        return Ok(None);
    }
    Ok(Some(option(WITH_TESTS_PY)))
}

/// Returns pytest's option for patterns of test files. It is one argument: before pytest 3.3, `-o` took every word up
/// to the next option.
pub(super) fn option(patterns: &str) -> String {
    format!("--override-ini=python_files={patterns}")
}
