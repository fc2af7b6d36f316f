//! The files of the workspace, filtered by `.gitignore`.

use std::path::Path;

use ignore::WalkBuilder;

use super::ignore_rules::IgnoreRules;
use crate::similarity::ranked;

/// Returns a walk over everything below `start` that git would not ignore. The workspace need not be a git
/// repository. Ignore files above it and the user's own are not used.
pub fn walker(start: &Path) -> WalkBuilder {
    let ignored = IgnoreRules::new(start);
    let mut walk = WalkBuilder::new(start);
    walk.standard_filters(false).filter_entry(move |entry| {
        if entry.depth() == 0 {
            return true;
        }
        let is_folder = entry.file_type().is_some_and(|t| t.is_dir());
        let is_environment = is_folder && entry.path().join("pyvenv.cfg").is_file();
        !is_environment
            && !is_build_product(&entry.file_name().to_string_lossy())
            && !ignored.contains(entry.path(), is_folder)
    });
    walk
}

/// Returns whether running or installing creates files of this name, which are always ignored.
pub(super) fn is_build_product(name: &str) -> bool {
    matches!(
        name,
        ".git"
            | "__pycache__"
            | ".pytest_cache"
            | ".hypothesis"
            | ".mypy_cache"
            | ".ruff_cache"
            | ".tox"
            | ".nox"
            | ".eggs"
            | ".coverage"
    ) || name.ends_with(".pyc")
        || name.ends_with(".pyo")
        || name.ends_with(".egg-info")
        || name.starts_with(".testwright-")
        || name.starts_with(".coverage.")
}

/// Implements [`super::Workspace::files`].
pub(super) fn files(root: &Path) -> Vec<String> {
    let entries = walker(root).build().flatten();
    let files = entries.filter(|e| e.file_type().is_some_and(|t| !t.is_dir()));
    let mut paths: Vec<String> = files
        .filter_map(|e| Some(e.path().strip_prefix(root).ok()?.to_str()?.to_owned()))
        .collect();
    paths.sort_unstable();
    paths
}

/// Returns at most five of these files, which are sorted, that are closest to a mistyped path, best first.
pub fn nearest(files: &[String], target: &str) -> Vec<String> {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (name, target) = (base(target), target.trim_start_matches("./"));
    let score = |file: &str| {
        if file.ends_with(target) {
            3.0
        } else if base(file) == name {
            2.0 + strsim::jaro_winkler(file, target)
        } else {
            strsim::jaro_winkler(&base(file), &name)
                + strsim::normalized_levenshtein(file, target) / 2.0
        }
    };
    ranked(files, score, 1.1).take(5).cloned().collect()
}
