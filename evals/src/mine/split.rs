//! Splits a change into a code patch and a test patch, using the repository's own test layout.

use std::collections::BTreeMap;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{FileChange, Repository};
use testwright_tools::workspace::Layout;

/// Maximum files of a change; a larger fix is not reviewable.
const FILES: usize = 200;

/// Paths of a change by category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paths {
    pub code: Vec<String>,
    pub tests: Vec<String>,
    /// Changed submodule pointers. They are in neither patch, because no patch contains the files of a submodule.
    pub submodules: Vec<String>,
}

impl Paths {
    pub(super) fn from_changes(changes: &[FileChange], layout: &Layout) -> Paths {
        let mut paths = Paths::default();
        for change in changes {
            let list = if change.submodule {
                &mut paths.submodules
            } else if layout.is_test_path(&change.path) {
                &mut paths.tests
            } else {
                &mut paths.code
            };
            list.push(change.path.clone());
        }
        paths
    }

    /// Returns why the change is not a fix with tests.
    pub(super) fn rejection_reason(
        &self,
        layout: &Layout,
        changes: &[FileChange],
    ) -> Option<&'static str> {
        let stays = |path: &String| !changes.iter().any(|c| c.deleted && c.path == *path);
        if !self.code.iter().any(|path| is_code(path)) {
            return Some("changes no code");
        }
        if !self
            .tests
            .iter()
            .any(|p| layout.is_test_file(p) && stays(p))
        {
            return Some("changes no test file");
        }
        (changes.len() > FILES).then_some("changes more than 200 files")
    }
}

/// Returns whether a file is executed: Python, or a language for Python extensions.
pub(super) fn is_code(path: &str) -> bool {
    let ends = [
        ".py", ".pyx", ".pxd", ".pyi", ".c", ".h", ".cpp", ".hpp", ".rs",
    ];
    ends.iter().any(|end| path.ends_with(end))
}

/// Reads the test layout at a commit.
pub(super) fn layout_at(repository: &Repository, commit: &str) -> Result<Layout, SandboxError> {
    let there = repository.root_entries(commit)?;
    let mut texts = BTreeMap::new();
    for name in Layout::CONFIGURATION {
        if there.iter().any(|entry| entry == name)
            && let Some(content) = repository.file_at(commit, name)?
        {
            texts.insert(name, String::from_utf8_lossy(&content).into_owned());
        }
    }
    Ok(Layout::from_files(&|name| texts.get(name).cloned()))
}

#[cfg(test)]
mod tests;
