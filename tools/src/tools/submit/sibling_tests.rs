//! Existing tests beside files that tests share: a `conftest.py`, an `__init__.py`, a module of helpers, data.

use std::path::Path;

use crate::outcomes::report::Report;
use crate::tools::submission::{Change, SiblingTests};
use crate::workspace::{FileChange, Workspace};

/// Most test files that are run for them.
const MAX_SIBLING_FILES: usize = 20;

/// Files of the patch that other tests may use.
pub fn shared(workspace: &Workspace, kept: &[FileChange]) -> Vec<String> {
    let layout = workspace.layout();
    kept.iter()
        .filter(|change| !layout.is_test_file(&change.path))
        // Data that is new is read by new tests alone.
        .filter(|change| change.path.ends_with(".py") || change.change == Change::Modified)
        .map(|change| change.path.clone())
        .collect()
}

/// Test files that the patch leaves as they are, in the folders of those files and below, the nearest first.
pub fn of(workspace: &Workspace, shared: &[String], kept: &[FileChange]) -> Vec<String> {
    if shared.is_empty() {
        return Vec::new();
    }
    let layout = workspace.layout();
    let depth = |path: &str| path.matches('/').count();
    let is_near = |path: &String| {
        let folders = shared.iter().filter_map(|file| Path::new(file).parent());
        folders
            .into_iter()
            .any(|folder| Path::new(path).starts_with(folder))
    };
    let is_kept = |path: &String| kept.iter().any(|change| change.path == *path);
    let mut found: Vec<String> = (workspace.files().into_iter())
        .filter(|path| layout.is_test_file(path) && is_near(path) && !is_kept(path))
        .collect();
    found.sort_by(|a, b| depth(a).cmp(&depth(b)).then_with(|| a.cmp(b)));
    found.truncate(MAX_SIBLING_FILES);
    found
}

/// How they do without the patch and with it, as far as it is needed to compare.
pub fn compared(shared: Vec<String>, mut before: Report, mut now: Report) -> SiblingTests {
    for report in [&mut before, &mut now] {
        report.printed.clear();
        for test in &mut report.tests {
            test.captured.clear();
            test.failure = None;
        }
    }
    SiblingTests {
        shared,
        before,
        now,
    }
}
