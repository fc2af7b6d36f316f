//! Task II: the classes and functions of the repository that a test calls.

use std::collections::BTreeMap;

use testwright_tools::python::{FoundDefinition, Kind, Module, RepositoryIndex, references};
use testwright_tools::workspace::Layout;

use super::extract::{IsolatedTest, is_test_file};
use super::problem::Question;
use crate::cases::Lines;

/// Indexes the modules that can contain targets; tests and their helpers are excluded.
pub fn index<'t>(
    texts: impl IntoIterator<Item = (&'t String, &'t String)>,
    layout: &Layout,
) -> RepositoryIndex {
    let is_code = |path: &str| !layout.is_test_path(path) && !is_test_file(path);
    let texts = texts.into_iter().filter(|(path, _)| is_code(path));
    RepositoryIndex::new(texts.map(|(path, text)| (path.clone(), text.clone())))
}

/// Returns the definitions that the test calls and covers, sorted by path and name, without duplicates.
pub fn targets(
    index: &RepositoryIndex,
    test: &IsolatedTest,
    covered: &Lines,
) -> Vec<FoundDefinition> {
    let definitions = called_definitions(index, &test.path, &test.text.text(), &test.id);
    let definitions = definitions.into_iter().filter(|d| covers(covered, d));
    let by_name = definitions.map(|d| ((d.path.clone(), d.qualified.clone()), d));
    by_name.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Returns whether a line of the definition's body ran.
fn covers(lines: &Lines, definition: &FoundDefinition) -> bool {
    let Some(ran) = lines.get(&definition.path) else {
        return false;
    };
    let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let mut bodies = definition.bodies.iter();
    bodies.any(|(first, last)| ran.range(line(*first)..=line(*last)).next().is_some())
}

/// Returns the question that asks for a test of this definition.
pub fn question(definition: &FoundDefinition) -> Question {
    Question::Target {
        path: definition.path.clone(),
        qualified_name: definition.qualified.clone(),
        is_class: definition.kind == Kind::Class,
    }
}

/// Returns whether the test calls the target, according to the syntax tree with names resolved.
pub fn calls(
    index: &RepositoryIndex,
    path: &str,
    source: &str,
    test: &str,
    target: (&str, &str),
) -> bool {
    let mut definitions = called_definitions(index, path, source, test).into_iter();
    definitions
        .any(|definition| (definition.path.as_str(), definition.qualified.as_str()) == target)
}

fn called_definitions(
    index: &RepositoryIndex,
    path: &str,
    source: &str,
    test: &str,
) -> Vec<FoundDefinition> {
    let module = Module::parse(source);
    // In Python the last definition of a name wins.
    let Some(definition) = module.find(test).pop() else {
        return Vec::new();
    };
    let mentions = references(&module, path, &definition.bytes, index).into_iter();
    mentions
        .filter(|reference| reference.is_called)
        .map(|reference| reference.found)
        .collect()
}

#[cfg(test)]
mod tests;
