//! The Python code of a repository at a commit.

use std::collections::{BTreeMap, BTreeSet};

use testwright_sandboxes::sandbox::Result;
use testwright_tools::python::RepositoryIndex;
use testwright_tools::workspace::Layout;

use super::extract::{IsolatedTest, is_test_file, isolated_tests};
use super::folder::SourceFile;
use super::problem::sha256;
use super::rejections::Counts;
use super::targets::index;
use crate::cases::CaseEnvironment;
use crate::large_stack::on_large_stack;

/// The code of a repository.
pub struct Repository {
    /// Full hash of the commit; empty if the source is not a commit.
    pub commit: String,
    /// Texts of the Python files by path; files that are not UTF-8 are left out.
    pub texts: BTreeMap<String, String>,
    /// Layout of the repository, which tells tests and packages apart.
    pub layout: Layout,
}

impl Repository {
    /// Reads the source of a place.
    ///
    /// # Errors
    ///
    /// Fails if the tree of the source cannot be read.
    pub fn read(place: &CaseEnvironment) -> Result<Repository> {
        let tree = place.source.tree()?;
        let mut texts = BTreeMap::new();
        for path in tree.paths().filter(|path| path.ends_with(".py")) {
            if let Some(bytes) = tree.read(path)?
                && let Ok(text) = String::from_utf8(bytes)
            {
                texts.insert(path.to_owned(), text);
            }
        }
        Ok(Repository {
            commit: place.source.commit.clone().unwrap_or_default(),
            texts,
            layout: crate::harness::layout(&tree)?,
        })
    }

    /// Indexes the definitions in all of the code.
    ///
    /// # Errors
    ///
    /// Fails if the thread that reads the code cannot start, or panics.
    pub fn index(&self) -> Result<RepositoryIndex> {
        on_large_stack(|| index(&self.texts, &self.layout))
    }

    /// Returns the paths and texts of the test files, sorted by path.
    pub fn test_files(&self) -> impl Iterator<Item = (&String, &String)> {
        self.texts.iter().filter(|(path, _)| is_test_file(path))
    }

    /// Returns all tests, each isolated in its file.
    pub fn tests(&self, counts: &mut Counts) -> Vec<IsolatedTest> {
        let files = self.test_files();
        files
            .flat_map(|(path, text)| isolated_tests(path, text, &self.layout, counts))
            .collect()
    }

    /// Returns the given files in the format of a benchmark.
    pub fn sources(&self, name: &str, paths: &BTreeSet<&str>) -> Vec<SourceFile> {
        let file = |path: &&str| {
            let text = self.texts.get(*path)?;
            Some(SourceFile {
                repository: name.to_owned(),
                commit: self.commit.clone(),
                path: (*path).to_owned(),
                sha256: sha256(text),
                text: text.clone(),
            })
        };
        paths.iter().filter_map(file).collect()
    }
}
