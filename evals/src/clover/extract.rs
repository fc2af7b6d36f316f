//! Splits a test file into files with one test each: everything else that pytest would run is removed, but the setup
//! stays.

use testwright_tools::python::{Module, SingleTest, single_test, test_functions};
use testwright_tools::workspace::Layout;

use super::rejections::{Counts, DropReason};

/// A test isolated in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolatedTest {
    /// Path of the test file.
    pub path: String,
    /// The test as `Class::function`.
    pub id: String,
    /// The test file with this test only.
    pub text: SingleTest,
}

impl IsolatedTest {
    /// Returns the node id of the test, `path::Class::function`.
    pub fn name(&self) -> String {
        format!("{}::{}", self.path, self.id)
    }
}

/// Returns whether the file name is `test_*.py` or `*_test.py`, regardless of the repository's configuration.
pub fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// Extracts the tests of one file.
pub fn isolated_tests(
    path: &str,
    text: &str,
    layout: &Layout,
    counts: &mut Counts,
) -> Vec<IsolatedTest> {
    let module = Module::parse(text);
    let tests = test_functions(&module, layout);
    counts.found += tests.len();
    if !module.errors().is_empty() {
        tests
            .iter()
            .for_each(|_| counts.drop(DropReason::NotParsed));
        return Vec::new();
    }
    let mut isolated_tests = Vec::new();
    for (at, test) in tests.iter().enumerate() {
        match single_test(&module, &tests, at) {
            Some(text) if Module::parse(text.text()).errors().is_empty() => {
                isolated_tests.push(IsolatedTest {
                    path: path.to_owned(),
                    id: test.id.clone(),
                    text,
                });
            }
            _ => counts.drop(DropReason::NotSeparable),
        }
    }
    isolated_tests
}

#[cfg(test)]
mod tests;
