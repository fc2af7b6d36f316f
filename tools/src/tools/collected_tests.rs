//! Tests that only the runner can find, because a plugin or a `conftest.py` collects them: doctests, YAML files, the
//! data files of mypy. The tests that the runner collects with and without the changes are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use globset::Glob;

use super::changes::LINK;
use crate::outcomes::{CollectedItem, file_of};
use crate::python::ContributedTest;
use crate::runners;
use crate::tool::Result;
use crate::workspace::{Change, FileChange, Workspace, decode_source, is_conftest};

/// Maximum time for collecting tests, with and without the changes.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of test modules that are collected because they name a changed file.
const MAX_MODULES: usize = 5;
/// Endings of files that are code or settings, whatever collects them.
const CODE: [&str; 18] = [
    "py", "pyi", "pyw", "pyx", "pxd", "pxi", "c", "h", "cc", "cpp", "hpp", "rs", "so", "toml",
    "cfg", "ini", "lock", "sh",
];

/// Returns the contributed tests of changed files in whose code no test is visible.
///
/// # Errors
///
/// Fails if tests cannot be collected, or the files cannot be changed.
pub(super) fn contributed(
    workspace: &mut Workspace,
    changes: &[FileChange],
) -> Result<Vec<ContributedTest>> {
    let layout = workspace.layout();
    let is_candidate = |change: &&FileChange| {
        let is_support = is_conftest(&change.path) || change.path.ends_with("__init__.py");
        let may_hold_tests = !change.path.ends_with(".py") || layout.is_test_path(&change.path);
        !is_support && may_hold_tests && change.now.is_some()
    };
    let changed: Vec<FileChange> = changes.iter().filter(is_candidate).cloned().collect();
    if changed.is_empty() || !changes.iter().all(can_be_reverted) {
        return Ok(Vec::new());
    }
    let paths: Vec<String> = changed.iter().map(|change| change.path.clone()).collect();
    let targets = with_related_modules(workspace, &paths);
    let deadline = Instant::now() + TIMEOUT;
    let now = collect(workspace, &targets, deadline)?;
    if now.is_empty() {
        return Ok(Vec::new());
    }
    let before = without(workspace, changes, |workspace| {
        let there = |path: &&String| workspace.root().join(file_of(path)).exists();
        let targets: Vec<String> = targets.iter().filter(there).cloned().collect();
        collect(workspace, &targets, deadline)
    })?;
    Ok(compared(&changed, &before, &now))
}

/// Returns files outside the folders of tests from which the runner collects tests at the base commit, and new files
/// from which it would. Code and settings are never among them.
///
/// # Errors
///
/// Fails if tests cannot be collected, or the files cannot be changed.
pub(super) fn collected_files(
    workspace: &mut Workspace,
    changes: &[FileChange],
) -> Result<BTreeSet<String>> {
    let layout = workspace.layout();
    let is_candidate = |change: &&FileChange| {
        let path = change.path.as_str();
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.');
        change.now.is_some()
            && !layout.is_test_path(path)
            && ending.is_some_and(|(_, end)| !CODE.contains(&end))
            && !is_in_package(workspace, path)
    };
    let candidates: Vec<&FileChange> = changes.iter().filter(is_candidate).collect();
    if candidates.is_empty() || !changes.iter().all(can_be_reverted) {
        return Ok(BTreeSet::new());
    }
    let paths: Vec<String> = candidates.iter().map(|c| c.path.clone()).collect();
    let is_new =
        |change: &FileChange| change.change == Change::Added && paths.contains(&change.path);
    let others: Vec<FileChange> = changes.iter().filter(|c| !is_new(c)).cloned().collect();
    let items = without(workspace, &others, |workspace| {
        let targets = with_related_modules(workspace, &paths);
        collect(workspace, &targets, Instant::now() + TIMEOUT)
    })?;
    let is_collected = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut items = items.iter();
        items.any(|item| item.file == **path || item.id.contains(name))
    };
    Ok(paths.iter().filter(is_collected).cloned().collect())
}

/// Returns whether a file is data of a package, which the code may read.
fn is_in_package(workspace: &Workspace, path: &str) -> bool {
    let folders = Path::new(path).ancestors().skip(1);
    let mut folders = folders.filter(|folder| !folder.as_os_str().is_empty());
    folders.any(|folder| workspace.root().join(folder).join("__init__.py").exists())
}

fn collect(workspace: &Workspace, ids: &[String], deadline: Instant) -> Result<Vec<CollectedItem>> {
    match ids.is_empty() {
        true => Ok(Vec::new()),
        false => runners::collect(workspace.checkout(), ids, deadline),
    }
}

/// Adds the test modules that name one of the files: pytest does not collect every data file by itself.
fn with_related_modules(workspace: &Workspace, paths: &[String]) -> Vec<String> {
    let data: Vec<&String> = paths.iter().filter(|path| !path.ends_with(".py")).collect();
    let mut targets = paths.to_vec();
    if data.is_empty() {
        return targets;
    }
    let names = |text: &str, path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        text.contains(name) || quoted_globs(text).any(|glob| matches(glob, path, name))
    };
    let (files, layout) = (workspace.files(), workspace.layout());
    let modules = files.iter().filter(|file| layout.is_test_file(file));
    let related = modules.filter(|module| {
        let text = workspace.read_text(Path::new(module)).unwrap_or_default();
        data.iter().any(|path| names(&text, path))
    });
    targets.extend(related.take(MAX_MODULES).cloned());
    targets
}

/// Returns the strings of a text that may be patterns for names of data files.
fn quoted_globs(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\'']).filter(|part| {
        part.len() < 200 && part.contains('*') && part.contains('.') && !part.contains([' ', '\n'])
    })
}

fn matches(glob: &str, path: &str, name: &str) -> bool {
    let glob = Glob::new(glob).map(|glob| glob.compile_matcher());
    glob.is_ok_and(|glob| glob.is_match(name) || glob.is_match(path))
}

/// Compares collected tests: those that are new, and those whose part of a changed file differs.
fn compared(
    changed: &[FileChange],
    before: &[CollectedItem],
    now: &[CollectedItem],
) -> Vec<ContributedTest> {
    let then: BTreeMap<&str, &CollectedItem> =
        before.iter().map(|item| (item.id.as_str(), item)).collect();
    let mut contributed_tests: Vec<ContributedTest> = Vec::new();
    let has_new = |file: &str| {
        let mut items = now.iter().filter(|item| item.file == file);
        items.any(|item| !then.contains_key(item.id.as_str()))
    };
    for item in now {
        let name = without_parameters(&item.id);
        let file = match item.file.as_str() {
            "" => file_of(&item.id),
            file => file,
        };
        let change = changed.iter().find(|change| change.path == file);
        let text = |bytes: Option<&[u8]>| bytes.map(decode_source).unwrap_or_default();
        let text_now = text(change.and_then(|change| change.now.as_deref()));
        let part = part_of(&text_now, item, now);
        let kind = match (then.get(item.id.as_str()), change) {
            (None, _) => Change::Added,
            // If its line is unknown, the new tests are the change.
            (Some(_), _) if item.line == 0 && has_new(&item.file) => continue,
            (Some(old), Some(change))
                if part != part_of(&text(change.base.as_deref()), old, before) =>
            {
                Change::Modified
            }
            (Some(_), _) => continue,
        };
        if contributed_tests.iter().all(|test| test.id != name) {
            contributed_tests.push(ContributedTest {
                id: name.to_owned(),
                change: kind,
                line: u32::try_from(item.line.max(1)).unwrap_or(u32::MAX),
                replaced_code: Vec::new(),
                source: part,
            });
        }
    }
    contributed_tests
}

fn without_parameters(id: &str) -> &str {
    match id.ends_with(']') {
        true => id.split_once('[').map_or(id, |(name, _)| name),
        false => id,
    }
}

/// Returns the lines of a test: up to the next test of the file, or all if its line is unknown.
fn part_of(text: &str, item: &CollectedItem, all: &[CollectedItem]) -> String {
    let others = all.iter().filter(|other| other.file == item.file);
    let next = others
        .map(|other| other.line)
        .filter(|line| *line > item.line);
    let end = next.min().unwrap_or(usize::MAX);
    let start = item.line.max(1);
    let end = if item.line == 0 { usize::MAX } else { end };
    let lines = text.lines().skip(start - 1).take(end - start);
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Returns whether a change can be undone and made again.
fn can_be_reverted(change: &FileChange) -> bool {
    change.oversized.is_none() && change.mode != Some(LINK) && change.base_mode != Some(LINK)
}

/// Does some work without these changes, and makes them again.
///
/// # Errors
///
/// Fails if the work fails, or the files cannot be changed.
pub(super) fn without<T>(
    workspace: &mut Workspace,
    changes: &[FileChange],
    work: impl FnOnce(&Workspace) -> Result<T>,
) -> Result<T> {
    let reverted = changes
        .iter()
        .try_for_each(|change| workspace.restore(Path::new(&change.path)));
    let result = reverted.and_then(|()| work(workspace));
    for change in changes {
        let path = Path::new(&change.path);
        match &change.now {
            Some(bytes) => workspace.write_as(path, bytes, change.mode)?,
            None if workspace.root().join(path).exists() => workspace.remove(path)?,
            None => {}
        }
    }
    result
}

#[cfg(test)]
mod tests;
