//! Finds the tests that a patch contributes, and their files.

use std::cell::RefCell;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{AppliedPatch, Files, Tree};
use testwright_tools::python;
use testwright_tools::tools::submission::Change;
use testwright_tools::workspace::{Layout, decode_source};

use super::foreign_files;
use crate::large_stack::on_large_stack;

/// Determines which files are tests at the base commit.
pub(crate) fn layout(tree: &Tree) -> Result<Layout, SandboxError> {
    let failed = RefCell::new(None);
    let read = |path: &str| match tree.read(path) {
        Ok(content) => content.map(|content| decode_source(&content)),
        Err(error) => {
            failed.borrow_mut().get_or_insert(error);
            None
        }
    };
    let paths: Vec<&str> = tree.paths().collect();
    let layout = Layout::from_tree(paths.into_iter(), &read);
    failed.into_inner().map_or(Ok(layout), Err)
}

/// Tests of a patch.
#[derive(Debug, Clone, Default)]
pub(super) struct Contribution {
    /// Contributed tests as `path::Class::function`, without parameters.
    pub tests: Vec<String>,
    /// Contributed tests that also exist without the patch, but differ there.
    pub changed: Vec<String>,
    /// Test files that the patch adds or changes.
    pub files: Vec<String>,
    /// Test files that also exist without the patch.
    pub modified: Vec<String>,
    /// Files of the patch that are not tests, as clauses such as `edits code under test: src/a.py`.
    pub foreign: Vec<String>,
    /// Deleted tests, for a note.
    pub deleted: Vec<String>,
    /// Tests that read what no behaviour depends on, as clauses such as `test_a.py::test reads chance`.
    pub unrelated_inputs: Vec<String>,
}

impl Contribution {
    /// Reads a patch; `fix` are the files of the golden code patch.
    pub(super) fn from_patch(
        applied: &AppliedPatch,
        fix: &Files,
        tree: &Tree,
        layout: &Layout,
    ) -> Result<Self, SandboxError> {
        on_large_stack(|| Contribution::read(applied, fix, tree, layout))?
    }

    fn read(
        applied: &AppliedPatch,
        fix: &Files,
        tree: &Tree,
        layout: &Layout,
    ) -> Result<Self, SandboxError> {
        let mut all = Contribution::default();
        for (path, file) in &applied.files {
            all.foreign.extend(foreign_files::reason(
                path,
                &applied.files,
                fix,
                tree,
                layout,
            ));
            let before = tree.read(path)?;
            let now = file.as_ref().map(|file| file.content.as_slice());
            let (then, after) = (before.as_deref().map(decode_source), now.map(decode_source));
            let tests = python::contributed(
                path,
                then.as_deref(),
                after.as_deref().unwrap_or_default(),
                layout,
            );
            for test in tests {
                let inputs = match test.change {
                    Change::Deleted => Vec::new(),
                    _ => python::unrelated_inputs(&test.source),
                };
                if !inputs.is_empty() {
                    let inputs = inputs.join(", ");
                    all.unrelated_inputs
                        .push(format!("{} reads {inputs}", test.id));
                }
                match test.change {
                    Change::Deleted => all.deleted.push(test.id),
                    Change::Added => all.tests.push(test.id),
                    Change::Modified => {
                        all.changed.push(test.id.clone());
                        all.tests.push(test.id);
                    }
                }
            }
            if layout.is_test_file(path) && now.is_some() {
                all.files.push(path.clone());
                all.modified.extend(before.is_some().then(|| path.clone()));
            }
        }
        Ok(all)
    }

    /// Returns whether the files contain tests that are not contributed.
    pub(super) fn has_other_tests(&self) -> bool {
        !self.modified.is_empty()
    }
}
