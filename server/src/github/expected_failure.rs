//! Marks tests as expected to fail, for pytest and unittest, and removes such marks.

use testwright_tools::config::RunnerKind;
use testwright_tools::outcomes::file_of;
use testwright_tools::python::edit::LineEnding;
use testwright_tools::python::import_edit::{ImportError, add_imports};
use testwright_tools::python::indentation::indentation;
use testwright_tools::python::{Binding, Definition, Module};

/// The reason why tests cannot be marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// Another runner does not know such marks.
    #[error("the tests are run by neither pytest nor unittest")]
    OtherRunner,
    /// A test without a function in its file, which may inherit it. Holds the name of the test and the file.
    #[error("{1} has no function {0}")]
    NoFunction(String, String),
    /// The import that the mark needs cannot be added.
    #[error(transparent)]
    Import(#[from] ImportError),
}

const UNITTEST: &str = "@unittest.expectedFailure";

/// Node ids of the failing tests, and of the passing tests in the same files.
pub struct Tests<'a> {
    /// Tests to mark.
    pub failing: Vec<&'a str>,
    /// Tests that must still pass.
    pub passing: Vec<&'a str>,
}

/// Returns the text of a test file with its failing tests marked. The reason names the issue.
///
/// # Errors
///
/// Fails if a test cannot be marked.
pub fn mark(
    path: &str,
    text: &str,
    tests: &Tests<'_>,
    reason: &str,
    runner: RunnerKind,
) -> Result<String, MarkError> {
    let (text, ends) = LineEnding::split(text);
    let module = Module::parse(text.as_str());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut imported = Vec::new();
    for definition in definitions(&module, path, &tests.failing)?.iter().rev() {
        let is_method = is_unittest(&module, definition);
        if !is_method && runner != RunnerKind::Pytest {
            return Err(MarkError::OtherRunner);
        }
        let line = match is_method {
            true => UNITTEST.to_owned(),
            // Some parameter sets of a parametrized test may pass.
            false => pytest_mark(reason, !names(path, definition, &tests.passing)),
        };
        imported.push(if is_method { "unittest" } else { "pytest" });
        let at = definition.first.saturating_sub(1);
        let indent = lines
            .get(at)
            .map_or("", |line| indentation(line))
            .to_owned();
        lines.insert(at.min(lines.len()), format!("{indent}{line}"));
    }
    imported.sort_unstable();
    imported.dedup();
    let bindings: Vec<Binding> = imported.into_iter().map(import).collect();
    let module = Module::parse(joined(&lines));
    let done = add_imports(&module, &bindings, &|_| false)?;
    Ok(ends.join(&done.text))
}

/// Removes the marks that [`mark`] adds to these tests.
pub(super) fn unmark(
    path: &str,
    text: &str,
    failing: &[&str],
    reason: &str,
) -> Result<String, MarkError> {
    let (text, ends) = LineEnding::split(text);
    let module = Module::parse(text.as_str());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let marks = [
        UNITTEST.to_owned(),
        pytest_mark(reason, true),
        pytest_mark(reason, false),
    ];
    for definition in definitions(&module, path, failing)?.iter().rev() {
        for at in (definition.first.saturating_sub(1)..definition.line.saturating_sub(1)).rev() {
            if lines
                .get(at)
                .is_some_and(|line| marks.iter().any(|mark| line.trim() == mark))
            {
                lines.remove(at);
            }
        }
    }
    Ok(ends.join(&joined(&lines)))
}

fn pytest_mark(reason: &str, is_strict: bool) -> String {
    let strict = if is_strict { "True" } else { "False" };
    // Python reads a JSON string as the same text.
    let reason = serde_json::Value::from(reason);
    format!("@pytest.mark.xfail(strict={strict}, reason={reason})")
}

fn import(module: &str) -> Binding {
    Binding {
        module: String::new(),
        name: module.to_owned(),
        local: module.to_owned(),
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Finds the functions of these tests in a file, in the order of the file.
fn definitions(module: &Module, path: &str, ids: &[&str]) -> Result<Vec<Definition>, MarkError> {
    let mut definitions: Vec<Definition> = Vec::new();
    for id in ids.iter().filter(|id| file_of(id) == path) {
        let name = qualified(id);
        // If several functions have the same name, Python runs the last one.
        let definition = module.find(&name).pop();
        let definition = definition.ok_or_else(|| MarkError::NoFunction(name, path.to_owned()))?;
        if !definitions.contains(&definition) {
            definitions.push(definition);
        }
    }
    definitions.sort_by_key(|definition| definition.first);
    Ok(definitions)
}

/// Returns `Class.test` for `FILE::Class::test[parameters]`.
fn qualified(id: &str) -> String {
    let plain = id.split('[').next().unwrap_or(id);
    let names: Vec<&str> = plain.split("::").skip(1).collect();
    names.join(".")
}

fn names(path: &str, definition: &Definition, ids: &[&str]) -> bool {
    ids.iter()
        .any(|id| file_of(id) == path && qualified(id) == definition.qualified)
}

/// Returns whether a function is a method of a class that derives from `TestCase`, judging by this file.
fn is_unittest(module: &Module, definition: &Definition) -> bool {
    let mut class = definition
        .qualified
        .rsplit_once('.')
        .map(|(class, _)| class.to_owned());
    // Classes in the file may derive from each other.
    for _ in 0..8 {
        let Some(name) = class else { return false };
        let Some(above) = module.find(&name).pop() else {
            return false;
        };
        let bases = above
            .signature
            .split_once('(')
            .map_or("", |(_, bases)| bases);
        let mut bases = bases.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
        if bases.clone().any(|base| base.ends_with("TestCase")) {
            return true;
        }
        class = bases
            .find(|base| !base.is_empty() && *base != name && !module.find(base).is_empty())
            .map(str::to_owned);
    }
    false
}

#[cfg(test)]
mod tests;
