//! The contributed tests of a workspace: tests added or changed since the base commit.

use super::collected_tests;
use crate::outcomes::covers;
use crate::python;
use crate::tool::{Result, ToolError};
use crate::tools::submission::{Change, ContributedTest};
use crate::workspace::{FileChange, Layout, Workspace, decode_source};

/// Returns all contributed tests, deleted ones included.
///
/// # Errors
///
/// Fails if the changes of the workspace cannot be read.
pub fn of_workspace(workspace: &mut Workspace) -> Result<Vec<ContributedTest>> {
    let changes = workspace.changes()?;
    collected(workspace, &changes)
}

/// Returns the contributed tests of these changes of the workspace: those that their code shows, or else those that the
/// runner collects.
///
/// # Errors
///
/// Fails if tests cannot be collected.
pub fn collected(
    workspace: &mut Workspace,
    changes: &[FileChange],
) -> Result<Vec<ContributedTest>> {
    let mut tests = of_changes(changes, workspace.layout());
    if ids(&tests).is_empty() {
        tests.extend(collected_tests::contributed(workspace, changes)?);
    }
    Ok(tests)
}

/// Returns the contributed tests that the code of these changed files shows, in their order.
pub fn of_changes(changes: &[FileChange], layout: &Layout) -> Vec<ContributedTest> {
    changes
        .iter()
        .flat_map(|change| of_file(change, layout))
        .collect()
}

fn of_file(change: &FileChange, layout: &Layout) -> Vec<ContributedTest> {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(decode_source);
    let after = text(&change.now).unwrap_or_default();
    python::contributed(&change.path, text(&change.base).as_deref(), &after, layout)
}

/// Returns the contributed tests that still exist.
pub fn present(contributed: &[ContributedTest]) -> impl Iterator<Item = &ContributedTest> {
    let tests = contributed.iter();
    tests.filter(|test| test.change != Change::Deleted)
}

/// Returns the node ids of the contributed tests that still exist.
pub fn ids(contributed: &[ContributedTest]) -> Vec<String> {
    present(contributed).map(|test| test.id.clone()).collect()
}

/// Returns whether the requested tests include contributed ones.
///
/// # Errors
///
/// Fails if the changes of the workspace cannot be read.
pub fn includes_contributed(workspace: &mut Workspace, requested_ids: &[String]) -> Result<bool> {
    let contributed = ids(&of_workspace(workspace)?);
    let mut requested_ids = requested_ids.iter();
    Ok(requested_ids.any(|requested_id| {
        let mut contributed = contributed.iter();
        contributed.any(|id| covers(id, requested_id) || covers(requested_id, id))
    }))
}

/// Returns the tests to run: the named ones, or else the contributed ones.
///
/// # Errors
///
/// Fails if there are neither, or a path is not valid.
pub fn named_or_contributed(
    workspace: &mut Workspace,
    named_ids: &[String],
) -> Result<Vec<String>> {
    if !named_ids.is_empty() {
        return named_ids.iter().map(|id| relative(workspace, id)).collect();
    }
    let ids = ids(&of_workspace(workspace)?);
    if ids.is_empty() {
        return Err(ToolError::refused(
            "No test was added or changed so far. Name the tests to run: node ids such as \
             `tests/test_x.py::TestA::test_b`, files or folders.",
        ));
    }
    Ok(ids)
}

/// Makes the path of a node id relative to the workspace.
fn relative(workspace: &Workspace, id: &str) -> Result<String> {
    let id = id.trim();
    let (path, rest) = match id.find("::") {
        Some(at) => id.split_at(at),
        None => (id, ""),
    };
    let path = workspace.resolve(path)?;
    let path = crate::workspace::forward(&path);
    Ok(format!(
        "{}{rest}",
        if path.is_empty() { "." } else { &path }
    ))
}
