//! Contributed tests: the test functions that a change to a file adds, changes or deletes.
//!
//! Found from the syntax trees before and after, never from a diff. A test is changed when its own code
//! (decorators, parameters and class included) or anything that it uses from the same file changed: a
//! fixture, a helper, module-level data, `setUp`. Comments, layout, docstrings and quotes do not count.
//! What a test uses from other files (`conftest.py`) is not followed; doctests are left out.

mod suite;
#[cfg(test)]
mod tests;

use super::Module;
use crate::tools::submission::{Change, ContributedTest};
use crate::workspace::Layout;
use suite::Suite;

/// The contributed tests of one file, in the order of the file, deleted ones last (their line and source
/// are those of `before`). `before` is `None` for a new file. A file that holds no tests by the layout has none.
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
    let before = before.map(Module::parse);
    let after = Module::parse(after);
    let old = before.as_ref().map(|module| Suite::read(module, layout));
    let new = Suite::read(&after, layout);
    let one = |test: &suite::Test, change| ContributedTest {
        id: format!("{path}::{}", test.id),
        change,
        line: u32::try_from(test.line).unwrap_or(u32::MAX),
        source: test.source.clone(),
    };
    let mut found = Vec::new();
    for test in &new.tests {
        let then = old
            .as_ref()
            .and_then(|old| Some((old, old.test(&test.id)?)));
        match then {
            None => found.push(one(test, Change::Added)),
            Some((old, then)) if old.fingerprint(then) != new.fingerprint(test) => {
                found.push(one(test, Change::Modified));
            }
            Some(_) => {}
        }
    }
    for test in old.iter().flat_map(|old| &old.tests) {
        if new.test(&test.id).is_none() {
            found.push(one(test, Change::Deleted));
        }
    }
    found
}
