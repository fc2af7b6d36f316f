//! Splits the changes into a test patch and changes that are reverted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tool::Result;
use crate::tools::changes::LINK;
use crate::tools::collected_tests::collected_files;
use crate::tools::submission::{Change, ChangedFile, Problem, ProblemKind};
use crate::workspace::{FileChange, Layout, Workspace, is_conftest};

use super::code_dependencies::used_by_code;
use super::shadowed_modules::shadows;

/// Maximum bytes of a file that a test patch adds or changes.
const MAX_FILE_LEN: usize = 2 << 20;
/// Maximum bytes of all these files together.
const MAX_PATCH_LEN: usize = 4 << 20;

/// The changes, sorted.
#[derive(Default)]
pub(crate) struct SplitPatch {
    /// Changes that are part of the patch.
    pub kept: Vec<FileChange>,
    /// All changed files.
    pub files: Vec<ChangedFile>,
    pub problems: Vec<Problem>,
}

/// The reason why a change is not kept, and the kind of problem if it is more than a leftover.
type DropReason = (String, Option<ProblemKind>);

/// Sorts the changes, and reverts those that are not kept.
///
/// # Errors
///
/// Fails if the workspace cannot be read or changed.
pub(crate) fn split_patch(workspace: &mut Workspace) -> Result<SplitPatch> {
    let changes = workspace.changes()?;
    let mut parts = SplitPatch::default();
    let mut put_back = Vec::new();
    let mut bytes = 0;
    let used = used_by_code(workspace, &changes);
    let shadows = shadows(workspace, &changes)?;
    let collected = collected_files(workspace, &changes)?;
    for change in &changes {
        let dropped = outside_tests(change, workspace, &collected)
            .or_else(|| verdict(change, &changes, workspace, &used))
            .or_else(|| in_place_of(change, &shadows))
            .or_else(|| too_large(change, &mut bytes));
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
        // A generated file of the environment stays unchanged, and is not part of the patch.
        super::unless_refused(workspace.restore(super::path(change)))?;
    }
    Ok(parts)
}

/// Refuses a file that is neither of tests by its path, nor one of `collected`, from which the runner collects tests.
fn outside_tests(
    change: &FileChange,
    workspace: &Workspace,
    collected: &BTreeSet<String>,
) -> Option<DropReason> {
    let path = change.path.as_str();
    if workspace.layout().is_test_path(path) || collected.contains(path) {
        return None;
    }
    let why = match change.change {
        Change::Added if path.ends_with(".py") => "a new file that is no test file",
        Change::Added => "a new file outside the folders of tests",
        Change::Modified => "code under test; only test files may change",
        Change::Deleted => "only test files may change",
    };
    Some((why.to_owned(), None))
}

fn verdict(
    change: &FileChange,
    all: &[FileChange],
    workspace: &Workspace,
    used: &BTreeSet<String>,
) -> Option<DropReason> {
    let layout = workspace.layout();
    let path = change.path.as_str();
    if used.contains(path) {
        let why = match change.change {
            Change::Added => "a new file in a folder that the code under test uses",
            _ => "the code under test uses it; only test files may change",
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
    if is_conftest(path) && !reaches_new_tests_alone(change, all, workspace) {
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

fn in_place_of(change: &FileChange, shadows: &BTreeMap<String, String>) -> Option<DropReason> {
    let name = shadows.get(&change.path)?;
    let why = format!("tests would import it in the place of `{name}`; give it another name");
    Some((why, Some(ProblemKind::Shadows)))
}

/// Refuses large files: a patch is sent as a whole, and stays in every record of the run. `bytes` is the size of the
/// files before this one.
fn too_large(change: &FileChange, bytes: &mut usize) -> Option<DropReason> {
    let length = |content: &Option<Vec<u8>>| content.as_ref().map_or(0, Vec::len);
    let own = match change.oversized {
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
        None => length(&change.now).max(length(&change.base)),
    };
    let dropped = |why| Some((why, Some(ProblemKind::TooLarge)));
    if own > MAX_FILE_LEN {
        return dropped(format!(
            "it has {} KiB; a file in a test patch has at most {} KiB",
            own.div_ceil(1 << 10),
            MAX_FILE_LEN >> 10
        ));
    }
    // A small file that was not read because other changes are too large.
    if change.oversized.is_some() || *bytes + own > MAX_PATCH_LEN {
        return dropped(format!(
            "with its {} KiB the files of the test patch have more than {} KiB together",
            own.div_ceil(1 << 10),
            MAX_PATCH_LEN >> 10
        ));
    }
    *bytes += own;
    None
}

/// Returns whether a path holds settings of test runners, or a module that Python imports automatically, above or
/// beside tests. Elsewhere such files are ordinary data.
fn changes_the_run(path: &str, workspace: &Workspace) -> bool {
    const OTHERS: [&str; 4] = [
        ".coveragerc",
        "sitecustomize.py",
        "usercustomize.py",
        "pyvenv.cfg",
    ];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let layout = workspace.layout();
    (Layout::CONFIGURATION.contains(&name) || OTHERS.contains(&name))
        && (workspace.files().iter())
            .any(|file| layout.is_test_file(file) && Path::new(file).starts_with(folder))
}

/// Returns whether a change is a new conftest.py in a folder without test files at the base commit.
fn reaches_new_tests_alone(change: &FileChange, all: &[FileChange], workspace: &Workspace) -> bool {
    let folder = change.path.strip_suffix("conftest.py").unwrap_or_default();
    let added = all.iter().filter(|c| c.change == Change::Added);
    let new: BTreeSet<&str> = added.map(|c| c.path.as_str()).collect();
    let (layout, files) = (workspace.layout(), workspace.files());
    let mut old = files.iter().filter(|path| !new.contains(path.as_str()));
    let has_old = old.any(|path| path.starts_with(folder) && layout.is_test_file(path));
    change.change == Change::Added && !has_old
}

fn is_build_product(path: &str) -> bool {
    let endings = [".pyc", ".pyo", ".orig", ".rej", ".swp", "~", ".coverage"];
    endings.iter().any(|ending| path.ends_with(ending)) || path.contains("__pycache__/")
}
