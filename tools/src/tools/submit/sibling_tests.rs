//! Finds existing tests beside files that tests share: a `conftest.py`, an `__init__.py`, a helper module, data.

use std::path::Path;

use crate::outcomes::report::TestReport;
use crate::tools::submission::{Change, SiblingTests};
use crate::workspace::{FileChange, Workspace};

/// Maximum number of sibling test files that are run.
const MAX_SIBLING_FILES: usize = 20;

/// Returns the files of the patch that other tests may use.
pub(super) fn shared(workspace: &Workspace, kept_changes: &[FileChange]) -> Vec<String> {
    let layout = workspace.layout();
    kept_changes
        .iter()
        .filter(|change| !layout.is_test_file(&change.path))
        // New data is read only by new tests.
        .filter(|change| change.path.ends_with(".py") || change.change == Change::Modified)
        .map(|change| change.path.clone())
        .collect()
}

/// Returns unchanged test files in the folders of the shared files and below, nearest first.
pub(super) fn find_files(
    workspace: &Workspace,
    shared: &[String],
    kept_changes: &[FileChange],
) -> Vec<String> {
    if shared.is_empty() {
        return Vec::new();
    }
    let layout = workspace.layout();
    let depth = |path: &str| path.matches('/').count();
    let is_near = |path: &String| {
        let mut folders = shared.iter().filter_map(|file| Path::new(file).parent());
        folders.any(|folder| Path::new(path).starts_with(folder))
    };
    let is_kept = |path: &String| kept_changes.iter().any(|change| change.path == *path);
    let mut siblings: Vec<String> = (workspace.files().into_iter())
        .filter(|path| layout.is_test_file(path) && is_near(path) && !is_kept(path))
        .collect();
    siblings.sort_by(|a, b| depth(a).cmp(&depth(b)).then_with(|| a.cmp(b)));
    siblings.truncate(MAX_SIBLING_FILES);
    siblings
}

/// Combines the outcomes without and with the patch, reduced to what the comparison needs.
pub(super) fn compared(
    shared: Vec<String>,
    mut before: TestReport,
    mut now: TestReport,
) -> SiblingTests {
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
