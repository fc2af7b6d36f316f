//! Finds the tests that a patch contributes, and their files.

use std::cell::RefCell;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::{AppliedPatch, Tree};
use testwright_tools::python;
use testwright_tools::tools::submission::Change;
use testwright_tools::workspace::{Layout, decode_source};

/// Files that may contain pytest's configuration.
pub(crate) const CONFIGURATION: [&str; 7] = Layout::CONFIGURATION;

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

/// Stack size in bytes for reading code.
const STACK: usize = 64 << 20;

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
    /// Python files of the code under test that the patch changes.
    pub sources: Vec<String>,
    /// Files of the patch that run before any test.
    pub startup: Vec<String>,
    /// Deleted tests, for a note.
    pub deleted: Vec<String>,
}

/// Modules that run and record tests.
const RUNNERS: [&str; 5] = ["pytest", "_pytest", "pluggy", "coverage", "unittest"];

/// Returns whether Python loads the file automatically, or in place of a module that runs and records tests. Such a
/// module takes effect in every folder on the import path, such as the repository or `src`.
fn is_of_startup(path: &str, tree: &Tree) -> bool {
    let mut above = String::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_file = parts.peek().is_none();
        let module = part.strip_suffix(".py").unwrap_or(part);
        if !is_file || module.len() < part.len() {
            let is_own = matches!(module, "sitecustomize" | "usercustomize")
                || module.starts_with("testwright_");
            let is_runner = RUNNERS.contains(&module) && !is_test_folder(&above);
            above.push_str(part);
            // The repository under test may be pytest itself.
            if (is_own || is_runner) && !tree.contains(&above) && !tree.has_folder(&above) {
                return true;
            }
        }
        above.push('/');
    }
    false
}

/// Returns whether a path lies in a test folder, where a package may have the name of the package it tests.
fn is_test_folder(above: &str) -> bool {
    above.split('/').any(|part| part.starts_with("test"))
}

impl Contribution {
    /// Reads the patch in a thread with a large stack, because code may be deeply nested.
    pub(super) fn of(
        applied: &AppliedPatch,
        tree: &Tree,
        layout: &Layout,
    ) -> Result<Self, SandboxError> {
        let work = || Contribution::read(applied, tree, layout);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let read = thread.spawn_scoped(scope, work)?.join();
            read.unwrap_or_else(|_| {
                let message = "reading the tests of the patch panicked";
                Err(SandboxError::new(ErrorKind::System, message))
            })
        })
    }

    fn read(applied: &AppliedPatch, tree: &Tree, layout: &Layout) -> Result<Self, SandboxError> {
        let mut all = Contribution::default();
        for (path, file) in &applied.files {
            if file.is_some() && is_of_startup(path, tree) {
                all.startup.push(path.clone());
            }
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
                match test.change {
                    Change::Deleted => all.deleted.push(test.id),
                    Change::Added => all.tests.push(test.id),
                    Change::Modified => {
                        all.changed.push(test.id.clone());
                        all.tests.push(test.id);
                    }
                }
            }
            if layout.is_test_file(path) {
                if now.is_some() {
                    all.files.push(path.clone());
                    all.modified.extend(before.is_some().then(|| path.clone()));
                }
            } else if path.ends_with(".py") && !layout.is_test_path(path) {
                all.sources.push(path.clone());
            }
        }
        Ok(all)
    }

    /// Returns whether the files contain tests that are not contributed.
    pub(super) fn has_other_tests(&self) -> bool {
        !self.modified.is_empty()
    }
}
