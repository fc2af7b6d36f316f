//! What of the changes is a test patch, and what is put back.

use std::path::Path;

use crate::tool::ToolError;
use crate::tools::state::LINK;
use crate::tools::submission::{Change, ChangedFile, Problem, ProblemKind};
use crate::workspace::{Changed, Layout, Workspace};

/// The changes, sorted.
pub struct Parts {
    /// Part of the patch.
    pub kept: Vec<Changed>,
    /// All of them.
    pub files: Vec<ChangedFile>,
    pub problems: Vec<Problem>,
}

/// Why a change is not kept, and what is wrong with it, if it is more than a leftover.
type Dropped = (String, Option<ProblemKind>);

/// Sorts the changes, and puts back those that are not kept.
pub fn partition(workspace: &mut Workspace) -> Result<Parts, ToolError> {
    let changes = workspace.changes()?;
    let mut parts = Parts {
        kept: Vec::new(),
        files: Vec::new(),
        problems: Vec::new(),
    };
    let mut put_back = Vec::new();
    for change in &changes {
        let dropped = verdict(change, &changes, workspace);
        let mut reason = None;
        match dropped {
            None => parts.kept.push(change.clone()),
            Some((why, kind)) => {
                if let Some(kind) = kind {
                    let text = format!("{}: {why}.", change.path);
                    parts.problems.push(Problem { kind, text });
                }
                put_back.push(change);
                reason = Some(why);
            }
        }
        parts.files.push(super::changed_file(change, reason));
    }
    for change in put_back {
        match workspace.restore(super::path(change)) {
            // A generated file that the environment came with: it stays as it is, and out of the patch.
            Err(ToolError::Refused(_)) | Ok(()) => {}
            Err(broken) => return Err(broken),
        }
    }
    Ok(parts)
}

fn verdict(change: &Changed, all: &[Changed], workspace: &Workspace) -> Option<Dropped> {
    let layout = workspace.layout();
    let path = change.path.as_str();
    if !layout.is_test_path(path) {
        let why = match change.change {
            Change::Added if path.ends_with(".py") => "a new file that is no test file",
            Change::Added => "a new file outside the folders of tests",
            Change::Modified => "code under test; only test files may change",
            Change::Deleted => "only test files may change",
        };
        return Some((why.to_owned(), None));
    }
    if change.mode == Some(LINK) {
        return Some(("a link; tests are made of files".to_owned(), None));
    }
    if changes_the_run(path, workspace) {
        let why = "it changes how tests are run, not what they test";
        return Some((why.to_owned(), Some(ProblemKind::Settings)));
    }
    if path.ends_with("conftest.py") && !reaches_new_tests_alone(change, all, workspace) {
        let why =
            "a conftest.py that reaches beyond the new tests; put fixtures into the test file";
        return Some((why.to_owned(), Some(ProblemKind::Conftest)));
    }
    if change.change == Change::Deleted {
        let kind = layout
            .is_test_file(path)
            .then_some(ProblemKind::DeletedTests);
        return Some(("existing files of the tests must stay".to_owned(), kind));
    }
    if is_build_product(path) {
        return Some(("a build product".to_owned(), None));
    }
    None
}

/// Settings of test runners, and modules that Python imports by itself, above tests or beside them: elsewhere they are
/// data like any other.
fn changes_the_run(path: &str, workspace: &Workspace) -> bool {
    const NAMES: &[&str] = &[
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        ".coveragerc",
        "sitecustomize.py",
        "usercustomize.py",
        "pyvenv.cfg",
    ];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let layout = workspace.layout();
    NAMES.contains(&name)
        && (workspace.files().iter())
            .any(|file| layout.is_test_file(file) && Path::new(file).starts_with(folder))
}

/// A new conftest.py in a folder in which no test file was at the base commit.
fn reaches_new_tests_alone(change: &Changed, all: &[Changed], workspace: &Workspace) -> bool {
    if change.change != Change::Added {
        return false;
    }
    let folder = change.path.strip_suffix("conftest.py").unwrap_or_default();
    let is_new = |path: &str| {
        all.iter()
            .any(|c| c.path == path && c.change == Change::Added)
    };
    let layout: &Layout = workspace.layout();
    !workspace
        .files()
        .iter()
        .any(|path| path.starts_with(folder) && layout.is_test_file(path) && !is_new(path))
}

fn is_build_product(path: &str) -> bool {
    let endings = [".pyc", ".pyo", ".orig", ".rej", ".swp", "~", ".coverage"];
    endings.iter().any(|ending| path.ends_with(ending)) || path.contains("__pycache__/")
}
