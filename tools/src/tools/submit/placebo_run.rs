//! Reruns the failing contributed tests with a placebo in the code under test: a change without meaning. A test that
//! passes then looks at the code instead of running it.
//!
//! The changed files and the code under test are also an hour older in this run. If a test passes, another run with
//! older files alone finds out which of the two it depends on.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::metadata;
use crate::outcomes::report::TestReport;
use crate::python::{self, LineNumbers};
use crate::runners::{self, Options};
use crate::tool::{Context, Result};
use crate::tools::submission::{ContributedTest, Rerun};
use crate::workspace::{FileChange, Workspace, decode_source, forward, is_conftest, open_regular};

use super::failures::{contributed_failures, failing_ids};
use super::reruns::random_bytes;
use super::unless_refused;

/// Maximum number of files that tests ran and that get a placebo.
const MAX_EXECUTED_FILES: usize = 30;
/// Maximum number of other files in the same folders that get a placebo.
const MAX_SIBLING_FILES: usize = 10;
/// Maximum bytes of a file that gets a placebo.
const MAX_FILE_LEN: usize = 1 << 20;
/// Time by which the files become older.
const EXTRA_AGE: Duration = Duration::from_secs(3700);

/// A file under test, and the same code with a placebo.
struct PlaceboFile {
    path: PathBuf,
    original: Vec<u8>,
    mode: u32,
    changed_text: String,
}

/// Makes the rerun. Returns no rerun if no contributed test failed in a run of code under test.
///
/// # Errors
///
/// Fails if a run cannot be made, or the workspace cannot be changed.
pub(super) fn rerun(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
    contributed: &[ContributedTest],
    old: &TestReport,
) -> Result<Option<Rerun>> {
    let ids = failing_ids(old, contributed);
    let executed = executed_files(context.workspace, old, contributed);
    if ids.is_empty() || executed.is_empty() {
        return Ok(None);
    }
    let changed = kept_changes.iter().map(|change| change.path.clone());
    let aged: Vec<String> = changed.chain(executed.iter().cloned()).collect();
    let seed = u64::from_ne_bytes(random_bytes()?);
    let files = placebo_files(context.workspace, &executed, seed);
    let all_fail = |report: &TestReport| {
        let again = failing_ids(report, contributed);
        ids.iter().all(|id| again.contains(id))
    };
    let rerun = |order: &str, report: TestReport| {
        let order = order.to_owned();
        Ok(Some(Rerun { order, report }))
    };
    let mut with_placebo = None;
    if !files.is_empty() {
        let report = run_with_placebo(context, &files, &aged, &ids)?;
        if all_fail(&report) {
            return rerun(Rerun::PLACEBO, report);
        }
        with_placebo = Some(report);
    }
    let older = run_with_older_files(context, &aged, &ids)?;
    match with_placebo {
        Some(report) if all_fail(&older) => rerun(Rerun::PLACEBO, report),
        _ => rerun(Rerun::OLDER, older),
    }
}

/// Returns the Python files under test that the failing contributed tests ran.
fn executed_files(
    workspace: &Workspace,
    old: &TestReport,
    contributed: &[ContributedTest],
) -> Vec<String> {
    let layout = workspace.layout();
    let mut files = Vec::new();
    for path in contributed_failures(old, contributed).flat_map(|test| &test.executed) {
        // The record may name any path.
        let Ok(path) = workspace.resolve(path) else {
            continue;
        };
        let path = forward(&path);
        if is_python(&path) && !layout.is_test_path(&path) && !files.contains(&path) {
            files.push(path);
        }
        if files.len() == MAX_EXECUTED_FILES {
            break;
        }
    }
    files
}

fn is_python(path: &str) -> bool {
    path.ends_with(".py")
}

/// Returns the files that can get a placebo: the executed ones, and some beside them.
fn placebo_files(workspace: &Workspace, executed: &[String], seed: u64) -> Vec<PlaceboFile> {
    let folder = |path: &str| {
        path.rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned()
    };
    let folders: BTreeSet<String> = executed.iter().map(|path| folder(path)).collect();
    let layout = workspace.layout();
    let is_sibling = |path: &String| {
        is_python(path)
            && folders.contains(&folder(path))
            && !executed.contains(path)
            && !layout.is_test_path(path)
            && !is_conftest(path)
    };
    let paths = workspace.files();
    let file = |path: &String| placebo_file(workspace, path, seed);
    let siblings = paths.iter().filter(|path| is_sibling(path));
    let siblings = siblings.filter_map(file).take(MAX_SIBLING_FILES);
    executed.iter().filter_map(file).chain(siblings).collect()
}

fn placebo_file(workspace: &Workspace, path: &str, seed: u64) -> Option<PlaceboFile> {
    let path = PathBuf::from(path);
    let metadata = fs::symlink_metadata(workspace.root().join(&path)).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_LEN as u64 {
        return None;
    }
    let original = workspace.read(&path).ok()?;
    std::str::from_utf8(&original).ok()?;
    let text = decode_source(&original);
    let changed_text = python::placebo(&text, None, seed, LineNumbers::Moved)?;
    (changed_text != text).then_some(PlaceboFile {
        path,
        original,
        mode: metadata.mode(),
        changed_text,
    })
}

/// Runs the tests with the placebo in place and older files, and puts the files back.
fn run_with_placebo(
    context: &mut Context<'_>,
    files: &[PlaceboFile],
    aged: &[String],
    ids: &[String],
) -> Result<TestReport> {
    let written = files.iter().try_for_each(|file| {
        let written = context.workspace.write_text(&file.path, &file.changed_text);
        remove_bytecode(context.workspace.root(), &file.path);
        // The run goes without the placebo of a file that cannot be written.
        unless_refused(written)
    });
    let report = written.and_then(|()| run_with_older_files(context, aged, ids));
    for file in files {
        let restored = (context.workspace).write_as(&file.path, &file.original, Some(file.mode));
        remove_bytecode(context.workspace.root(), &file.path);
        unless_refused(restored)?;
    }
    report
}

/// Removes the bytecode of a file, which Python may use without looking at the source.
fn remove_bytecode(root: &Path, path: &Path) {
    let whole = root.join(path);
    let (Some(folder), Some(stem)) = (whole.parent(), path.file_stem()) else {
        return;
    };
    let cache = folder.join("__pycache__");
    let prefix = format!("{}.", stem.to_string_lossy());
    if !fs::symlink_metadata(&cache).is_ok_and(|metadata| metadata.is_dir()) {
        return;
    }
    for entry in fs::read_dir(&cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) && name.ends_with(".pyc") {
            // A file that another process has removed is gone, too.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Runs the tests while the files are older than they are, and gives them back their times.
fn run_with_older_files(
    context: &Context<'_>,
    aged: &[String],
    ids: &[String],
) -> Result<TestReport> {
    let times: Vec<(PathBuf, SystemTime)> = aged
        .iter()
        .filter_map(|path| make_older(context.workspace, path))
        .collect();
    let mut options = Options::with_deadline(context.share_of_time(2));
    options.whole_values = ids.to_vec();
    let report = runners::run(context.workspace.checkout(), ids, &options);
    for (path, time) in times.into_iter().rev() {
        set_modified(&path, time);
    }
    report
}

/// Makes a file older. Returns its path and its time before; `None` if its time cannot be set.
fn make_older(workspace: &Workspace, path: &str) -> Option<(PathBuf, SystemTime)> {
    let whole = workspace.root().join(workspace.resolve(path).ok()?);
    let metadata = fs::symlink_metadata(&whole).ok()?;
    let modified = metadata.modified().ok().filter(|_| metadata.is_file())?;
    set_modified(&whole, modified.checked_sub(EXTRA_AGE)?).then_some((whole, modified))
}

/// Sets a file's modification time. Returns whether that was possible: only the owner of a file may do so.
fn set_modified(path: &Path, time: SystemTime) -> bool {
    open_regular(path).is_ok_and(|file| metadata::set_modified(&file, time).is_ok())
}

#[cfg(test)]
mod tests;
