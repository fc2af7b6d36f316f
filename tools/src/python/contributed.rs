//! Contributed tests: the test functions that a change to a file adds, changes or deletes.
//!
//! The comparison uses the syntax trees before and after, never a diff. A test is changed if its own code changed
//! (decorators, parameters and class included), or anything that it uses from the same file: a fixture, a helper,
//! module-level data, `setUp`. Comments, layout, docstrings and quotes do not count. Code that a test uses from
//! other files (`conftest.py`) is not followed; doctests are left out.

mod dependencies;
mod referred_names;
mod test_file;
mod test_functions;
#[cfg(test)]
mod tests;
mod used_code;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::workspace::{Change, Layout};
pub use test_functions::{TestFunction, test_functions};
pub use used_code::{Excerpt, used_code};

use dependencies::FileComparison;
use test_file::{Test, TestFile};

/// A test function that a change adds, changes or deletes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContributedTest {
    /// pytest's node id without parameters: `path::Class::function`.
    pub id: String,
    /// Whether the test is added, modified or deleted.
    pub change: Change,
    /// First line of the function (decorators included) in the changed file, from 1.
    pub line: u32,
    /// Source of the function, decorators included.
    pub source: String,
    /// Dotted names of code outside the file that the function replaces while it runs. Only `submit` finds them, for
    /// failing tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced_code: Vec<String>,
}

/// Returns the contributed tests of one file in file order, deleted tests last (with their line and source in
/// `before`). `before` is `None` for a new file. A file that is not a test file by the layout has none.
pub fn contributed(
    path: &str,
    before: Option<&str>,
    after: &str,
    layout: &Layout,
) -> Vec<ContributedTest> {
    let is_support = matches!(path.rsplit('/').next(), Some("conftest.py" | "__init__.py"));
    if !path.ends_with(".py") || is_support || !layout.is_test_path(path) {
        return Vec::new();
    }
    let layout = layout.of_file(path);
    let before = before.map(Module::parse);
    let after = Module::parse(after);
    let old = before.as_ref().map(|module| TestFile::read(module, layout));
    let new = TestFile::read(&after, layout);
    let one = |test: &Test, change| ContributedTest {
        id: format!("{path}::{}", test.id),
        change,
        line: u32::try_from(test.line).unwrap_or(u32::MAX),
        source: test.source.clone(),
        replaced_code: Vec::new(),
    };
    let Some(old) = &old else {
        return new.tests.iter().map(|t| one(t, Change::Added)).collect();
    };
    let (then, now) = (by_id(old), by_id(&new));
    let mut comparison = FileComparison::new(old, &new);
    let mut contributed_tests = Vec::new();
    for test in &new.tests {
        match then.get(test.id.as_str()) {
            None => contributed_tests.push(one(test, Change::Added)),
            Some(then) if comparison.differs(then, test) => {
                contributed_tests.push(one(test, Change::Modified))
            }
            Some(_) => {}
        }
    }
    let deleted_tests = old
        .tests
        .iter()
        .filter(|test| !now.contains_key(test.id.as_str()));
    contributed_tests.extend(deleted_tests.map(|test| one(test, Change::Deleted)));
    contributed_tests
}

fn by_id(file: &TestFile) -> HashMap<&str, &Test> {
    let tests = file.tests.iter();
    tests.map(|test| (test.id.as_str(), test)).collect()
}
