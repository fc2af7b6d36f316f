//! Splits a change into a code patch and a test patch, using the repository's own test layout.

use std::collections::BTreeMap;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{FileChange, Repository};
use testwright_tools::workspace::Layout;

use crate::harness::CONFIGURATION;

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
    for name in CONFIGURATION {
        if there.iter().any(|entry| entry == name)
            && let Some(content) = repository.file_at(commit, name)?
        {
            texts.insert(name, String::from_utf8_lossy(&content).into_owned());
        }
    }
    Ok(Layout::from_files(&|name| texts.get(name).cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(path: &str) -> FileChange {
        FileChange {
            path: path.to_owned(),
            added: false,
            deleted: false,
            submodule: false,
        }
    }

    #[test]
    fn repository_layout_determines_tests() {
        let own = "[pytest]\ntestpaths = selftest\npython_files = check_*.py\n";
        let layout = Layout::from_files(&|name| (name == "pytest.ini").then(|| own.to_owned()));
        let mut changes = [
            "pkg/a.py",
            "selftest/check_a.py",
            "selftest/data.txt",
            "CHANGES.md",
        ]
        .map(changed)
        .to_vec();
        changes.push(FileChange {
            submodule: true,
            ..changed("tests/integration")
        });
        let paths = Paths::from_changes(&changes, &layout);
        assert_eq!(paths.code, ["pkg/a.py", "CHANGES.md"]);
        assert_eq!(paths.tests, ["selftest/check_a.py", "selftest/data.txt"]);
        assert_eq!(paths.rejection_reason(&layout, &changes), None);
        let plain = Paths::from_changes(&changes, &Layout::default());
        assert_eq!(plain.tests, Vec::<String>::new());
        assert_eq!(paths.submodules, ["tests/integration"]);
    }

    #[test]
    fn fix_must_change_code_and_tests() {
        let layout = Layout::default();
        let lack = |names: &[&str]| {
            let changes: Vec<FileChange> = names.iter().map(|name| changed(name)).collect();
            Paths::from_changes(&changes, &layout).rejection_reason(&layout, &changes)
        };
        assert_eq!(lack(&["pkg/a.py", "tests/test_a.py"]), None);
        assert_eq!(
            lack(&["README.md", "tests/test_a.py"]),
            Some("changes no code")
        );
        assert_eq!(
            lack(&["pkg/a.py", "tests/data.sql"]),
            Some("changes no test file")
        );
    }
}
