//! Repository view for an agent that solves a problem: all tests are removed except the problem's own, without its
//! statements.
//!
//! Files are changed before anything is built or started from them, so no archive, bytecode or installed copy contains
//! the hidden tests. Everything that is not a test stays unchanged (code, `conftest.py`, helpers, data).

use std::collections::BTreeMap;
use std::path::Path;

use testwright_sandboxes::repository::{Source, Tree};
use testwright_sandboxes::sandbox::Result;
use testwright_tools::python::{Module, test_functions, without_tests};
use testwright_tools::workspace::Layout;

use super::extract::is_test_file;
use super::problem::Problem;
use crate::harness::layout;
use crate::large_stack::on_large_stack;

/// Returns the source that an agent works on; it has its own digest.
///
/// # Errors
///
/// Fails if the source cannot be read, or the changed source cannot be stored.
pub fn with_hidden_tests(source: &Source, problem: &Problem, cache: &Path) -> Result<Source> {
    let tree = source.tree()?;
    let layout = layout(&tree)?;
    let mut files = on_large_stack(|| changes(&tree, &layout))??;
    let own = problem.without_statements();
    files.insert(problem.path.clone(), Some(own.into_bytes()));
    source.with_changes(&files, cache)
}

/// Returns the changed test files, without their tests; `None` means that the file is removed.
fn changes(tree: &Tree, layout: &Layout) -> Result<BTreeMap<String, Option<Vec<u8>>>> {
    let mut files = BTreeMap::new();
    let is_test = |path: &&str| is_test_file(path) || layout.is_test_file(path);
    for path in tree.paths().filter(is_test) {
        let Some(bytes) = tree.read(path)? else {
            continue;
        };
        let text = String::from_utf8(bytes).ok();
        let stripped = text.as_deref().and_then(|text| stripped(text, layout));
        if text.is_none() || stripped != text {
            files.insert(path.to_owned(), stripped.map(String::into_bytes));
        }
    }
    Ok(files)
}

/// Returns the text without its tests, or `None` if its tests cannot be identified.
fn stripped(text: &str, layout: &Layout) -> Option<String> {
    let module = Module::parse(text);
    if !module.errors().is_empty() {
        return None;
    }
    let text = without_tests(&module, &test_functions(&module, layout));
    let is_valid = Module::parse(text.as_str()).errors().is_empty();
    is_valid.then_some(text)
}

#[cfg(test)]
mod tests;
