//! The contributed tests of a workspace: what was added and changed since the base commit.

use crate::outcomes::covers;
use crate::python;
use crate::tool::ToolError;
use crate::tools::submission::{Change, ContributedTest};
use crate::workspace::{FileChange, Layout, Workspace};

/// All contributed tests, deleted ones included.
pub fn of_workspace(workspace: &mut Workspace) -> Result<Vec<ContributedTest>, ToolError> {
    let changes = workspace.changes()?;
    Ok(of_changes(&changes, workspace.layout()))
}

pub fn of_changes(changes: &[FileChange], layout: &Layout) -> Vec<ContributedTest> {
    changes
        .iter()
        .flat_map(|change| of_file(change, layout))
        .collect()
}

fn of_file(change: &FileChange, layout: &Layout) -> Vec<ContributedTest> {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(lossy);
    let after = text(&change.now).unwrap_or_default();
    python::contributed(&change.path, text(&change.base).as_deref(), &after, layout)
}

/// Text for looking at, whatever its encoding.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Node ids of the contributed tests that there are now.
pub fn ids(contributed: &[ContributedTest]) -> Vec<String> {
    let present = contributed
        .iter()
        .filter(|test| test.change != Change::Deleted);
    present.map(|test| test.id.clone()).collect()
}

/// Are there contributed tests among those that were asked for?
pub fn is_among(workspace: &mut Workspace, asked: &[String]) -> Result<bool, ToolError> {
    let contributed = ids(&of_workspace(workspace)?);
    let mut asked = asked.iter();
    Ok(asked.any(|asked| {
        let mut contributed = contributed.iter();
        contributed.any(|id| covers(id, asked) || covers(asked, id))
    }))
}

/// The tests to run: those named, else the contributed ones. Refused where there are neither.
pub fn named_or_contributed(
    workspace: &mut Workspace,
    named: &[String],
) -> Result<Vec<String>, ToolError> {
    if !named.is_empty() {
        return named.iter().map(|id| relative(workspace, id)).collect();
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

/// A node id with its path relative to the workspace, whatever form it was given in.
fn relative(workspace: &Workspace, id: &str) -> Result<String, ToolError> {
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
