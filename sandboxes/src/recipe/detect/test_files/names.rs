//! The names of test files: those that pytest expects, or those that `python_files` sets in the configuration of a project.

use std::collections::BTreeSet;

use regex::Regex;

use super::super::Files;
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Files that may configure pytest.
static CONFIGURATION: Pattern =
    Pattern::new(r"^(?:\.?pytest\.(?:ini|toml)|pyproject\.toml|setup\.cfg|tox\.ini)$");

/// Maximum number of folders whose configuration is read.
const MAX_FOLDERS: usize = 40;

/// The patterns of the folders that configure pytest. Without patterns, those of pytest apply.
pub(super) struct TestNames(Vec<(String, Vec<Regex>)>);

impl TestNames {
    /// Reads the configuration of pytest in all folders.
    pub(super) fn read(tree: &Tree) -> Result<TestNames> {
        let folder = |path: &str| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            CONFIGURATION.is_match(name).then(|| folder.to_owned())
        };
        let folders: BTreeSet<String> = tree.paths().filter_map(folder).collect();
        let mut all = Vec::new();
        for folder in folders.into_iter().take(MAX_FOLDERS) {
            let files = Files::read(&tree.subtree(&folder))?;
            let settings = files.pytest_settings();
            let names = settings.iter().find(|(key, _)| key == "python_files");
            let names = names
                .map_or("", |(_, names)| names.as_str())
                .split_whitespace();
            let names: Vec<&str> = names.map(|name| name.trim_matches(['"', '\''])).collect();
            // Patterns for all files do not tell tests from other code.
            let is_for_all = |name: &&str| matches!(last_part(name), "*" | "*.py");
            let is_broad = names.iter().any(is_for_all);
            let patterns: Vec<Regex> = names.into_iter().filter_map(name_pattern).collect();
            if !settings.is_empty() {
                let patterns = patterns.into_iter().filter(|_| !is_broad);
                all.push((folder, patterns.collect()));
            }
        }
        Ok(TestNames(all))
    }

    /// Returns whether a path is that of a test file.
    pub(super) fn is_match(&self, path: &str) -> bool {
        let around = self.0.iter().filter(|(folder, _)| is_inside(path, folder));
        let name = last_part(path);
        match around.max_by_key(|(folder, _)| folder.len()) {
            Some((_, patterns)) if !patterns.is_empty() => {
                let is_code = name.ends_with(".py") && name != "conftest.py";
                is_code && patterns.iter().any(|pattern| pattern.is_match(name))
            }
            _ => is_named(path),
        }
    }
}

/// Returns whether a path is inside a folder, which is empty for the root.
pub(super) fn is_inside(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the innermost of the folders that contain a path.
pub(crate) fn innermost<'a>(
    path: &str,
    folders: impl IntoIterator<Item = &'a String>,
) -> Option<&'a String> {
    let around = folders.into_iter().filter(|folder| is_inside(path, folder));
    around.max_by_key(|folder| folder.len())
}

/// Returns whether pytest expects tests in a file by default.
pub(super) fn is_named(path: &str) -> bool {
    let name = last_part(path);
    (name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py")
}

/// Converts a glob of file names. Only its last part counts.
pub(super) fn name_pattern(glob: &str) -> Option<Regex> {
    let pattern = regex::escape(last_part(glob));
    let pattern = pattern.replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("^{pattern}$")).ok()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
