//! Puts the accepted tests into the code of another commit.

use std::collections::BTreeMap;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{self, Files, Source, Tree};
use testwright_tools::outcomes::file_of;

/// Prefix of the name of a test file beside one that the patch does not fit.
const COPY_PREFIX: &str = "test_testwright_history_";

/// The tests on the commit on which they were accepted.
pub(super) struct BaseTests {
    patch: String,
    tree: Tree,
    /// Files of the patch, in their new version.
    files: Files,
    /// Files with accepted tests.
    test_files: Vec<String>,
}

/// Files to write into the code of a commit.
pub(super) struct Placement {
    pub files: Files,
    /// New names of test files, by old name.
    pub renamed: BTreeMap<String, String>,
}

impl Placement {
    pub(super) fn unchanged(files: Files) -> Placement {
        Placement {
            files,
            renamed: BTreeMap::new(),
        }
    }

    /// Returns the id that a test has in this commit.
    pub(super) fn id(&self, id: &str) -> String {
        let file = file_of(id);
        match self.renamed.get(file) {
            Some(name) => format!("{name}{}", &id[file.len()..]),
            None => id.to_owned(),
        }
    }
}

impl BaseTests {
    /// Applies the patch to the code on which the tests were accepted. The inner error says why it does not apply.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be read, or git cannot be run.
    pub(super) fn new<'a>(
        source: &Source,
        patch: &str,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Result<BaseTests, String>, SandboxError> {
        let tree = source.tree()?;
        let applied = repository::apply(&tree, &Files::new(), patch)?;
        let ids = ids.into_iter();
        let test_files = ids.map(|id| file_of(id).to_owned()).collect();
        Ok(applied.map(|applied| BaseTests {
            patch: patch.to_owned(),
            tree,
            files: applied.files,
            test_files,
        }))
    }

    /// Returns the files to write into another commit: those of the patch, or else whole test files under other names.
    /// The inner error says why the tests do not fit.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be read, or git cannot be run.
    pub(super) fn place(&self, tree: &Tree) -> Result<Result<Placement, String>, SandboxError> {
        match repository::apply(tree, &Files::new(), &self.patch)? {
            Ok(applied) => Ok(Ok(Placement::unchanged(applied.files))),
            Err(reason) => Ok(self.place_whole_files(tree)?.ok_or(reason)),
        }
    }

    /// Returns whole test files to write into another commit. Those that exist there get other names, and files whose tests
    /// were not accepted are left alone. Returns `None` if the patch also changes other files that differ there.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be read.
    pub(super) fn place_whole_files(&self, tree: &Tree) -> Result<Option<Placement>, SandboxError> {
        let mut placement = Placement::unchanged(Files::new());
        for (path, file) in &self.files {
            let now = tree.file(path)?;
            if now == *file {
                continue;
            }
            let is_unchanged = now == self.tree.file(path)?;
            let target = match self.test_files.contains(path) {
                _ if is_unchanged || (now.is_none() && file.is_some()) => path.clone(),
                true if file.is_some() => copy_name(path),
                false if self.is_unrelated(path) => continue,
                _ => return Ok(None),
            };
            if target != *path {
                if tree.contains(&target) {
                    return Ok(None);
                }
                placement.renamed.insert(path.clone(), target.clone());
            }
            placement.files.insert(target, file.clone());
        }
        Ok(Some(placement))
    }

    /// Returns whether a file only has tests that were not accepted, and no accepted test imports it.
    fn is_unrelated(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some(module) = name.strip_suffix(".py") else {
            return false;
        };
        let mentions = |test_file: &String| {
            let file = self.files.get(test_file).and_then(Option::as_ref);
            file.is_some_and(|file| String::from_utf8_lossy(&file.content).contains(module))
        };
        (module.starts_with("test_") || module.ends_with("_test"))
            && !self.test_files.iter().any(mentions)
    }
}

/// Returns the path of a copy in the same folder, so that relative imports and `conftest.py` stay valid.
fn copy_name(path: &str) -> String {
    let (folder, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
    let name = name.strip_prefix("test_").unwrap_or(name);
    format!("{folder}{COPY_PREFIX}{name}")
}

#[cfg(test)]
mod tests;
