//! Application of a patch on the host, in a folder that contains only the files in the patch.
//!
//! It follows the public harnesses of the benchmarks: `git apply`, then `git apply` ignoring whitespace, then GNU
//! `patch` with some fuzz. Notes report what was tolerated, because these tools differ in what they accept.

use std::path::Path;

use super::Tree;
use super::accepted::{Accepted, accepted};
use super::patch::{check_text, git_apply, run_limited, touched_paths, write_base_files};
use super::patch_base::{Base, File, FileKind, Files, is_plain, read_folder};
use super::process;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

#[cfg(test)]
mod tests;

/// The result of applying a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedPatch {
    /// The files that differ from the previous ones, with their new content.
    pub files: Files,
    /// Notes on adjustments that made the patch apply, such as the amount of fuzz.
    pub notes: Vec<String>,
}

/// Applies a patch to the files of a tree, some of which were `changed` before.
///
/// The inner error explains in git's words why the patch does not apply.
///
/// # Errors
///
/// Fails if the patch could not be tried, for example because the tree cannot be read or git cannot be run.
pub fn apply(tree: &Tree, changed: &Files, patch: &str) -> Accepted<AppliedPatch> {
    accepted!(check_text(patch));
    let base = Base::new(tree, changed);
    let mut notes = Vec::new();
    let mut text = patch.to_owned();
    if !text.ends_with('\n') {
        text.push('\n');
        notes.push("the patch's last line had no line end".to_owned());
    }
    let paths = touched_paths(&text);
    let attempt = |run: &dyn Fn(&Path) -> Accepted<Vec<String>>| -> Accepted<AppliedPatch> {
        let folder = tempfile::tempdir()?;
        accepted!(write_base_files(&base, &text, folder.path())?);
        let before = read_folder(folder.path())?;
        let further = accepted!(run(folder.path())?);
        let files = difference(before, read_folder(folder.path())?);
        if let Some(path) = files.keys().find(|path| !is_plain(path)) {
            return Ok(Err(format!("invalid path '{path}'")));
        }
        let notes = notes.iter().cloned().chain(further).collect();
        Ok(Ok(AppliedPatch { files, notes }))
    };
    let by_git = |patch: &str, options: &[&str], note: Option<&str>| {
        attempt(&|folder| {
            let result = git_apply(folder, patch, options)?;
            Ok(result.map(|()| note.map(str::to_owned).into_iter().collect()))
        })
    };

    let reason = match by_git(&text, &[], None)? {
        Ok(applied) => return Ok(Ok(applied)),
        Err(reason) => reason,
    };
    if has_carriage_returns(&text) {
        let plain = text.replace("\r\n", "\n");
        let note = "carriage returns at the ends of the patch's lines were ignored";
        if let Ok(applied) = by_git(&plain, &[], Some(note))? {
            return Ok(Ok(applied));
        }
    }
    let note = "differences in whitespace were ignored";
    if let Ok(applied) = by_git(&text, &["--ignore-whitespace"], Some(note))? {
        return Ok(Ok(applied));
    }
    // git rejects these on principle, but `patch` is less careful.
    let careful = paths.iter().any(|path| !is_plain(path))
        || text.lines().any(is_for_odd_mode)
        || text.lines().any(is_for_ed);
    let through_link = || -> Result<bool> {
        for path in &paths {
            for (end, _) in path.match_indices('/') {
                if base
                    .file(&path[..end])?
                    .is_some_and(|f| f.kind == FileKind::Link)
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    };
    if careful || through_link()? {
        return Ok(Err(reason));
    }
    match attempt(&|folder| apply_with_fuzz(folder, &text)) {
        // `patch` skips anything that it cannot read.
        Ok(Ok(applied)) if !applied.files.is_empty() => Ok(Ok(applied)),
        Ok(_) => Ok(Err(reason)),
        Err(error) if error.kind == ErrorKind::Unavailable => {
            Ok(Err(format!("{reason}\n({})", error.message)))
        }
        Err(error) => Err(error),
    }
}

/// Returns whether all lines end with a carriage return, or all lines that git parses itself.
fn has_carriage_returns(text: &str) -> bool {
    let mut lines = text.split_inclusive('\n');
    lines.clone().all(|line| line.ends_with("\r\n"))
        || lines.any(|line| line.starts_with("+++ ") && line.ends_with("\r\n"))
}

/// Returns whether a line sets the mode of something other than a plain file. `patch` reads the digits as a number, so
/// they can be written in many ways.
fn is_for_odd_mode(line: &str) -> bool {
    let starts = [
        "new file mode",
        "deleted file mode",
        "old mode",
        "new mode",
        "index ",
    ];
    if !starts.iter().any(|start| line.starts_with(start)) {
        return false;
    }
    let words: Vec<_> = line.split_whitespace().collect();
    // `index 1234..5678` may have no mode.
    if line.starts_with("index ") && words.len() < 3 {
        return false;
    }
    words
        .last()
        .is_none_or(|mode| !["100644", "100755"].contains(mode))
}

/// Returns whether `patch` would pass the line to the editor `ed`, which can run programs. Lines of hunks never begin
/// with a digit.
fn is_for_ed(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
    let command = rest.trim_end();
    rest.len() < line.len() && ["a", "c", "d", "i", "s"].contains(&command)
}

/// Runs GNU `patch` and returns its messages about hunks that are not in their place.
fn apply_with_fuzz(folder: &Path, patch: &str) -> Accepted<Vec<String>> {
    let mut command = process::limited("patch");
    for name in [
        "POSIXLY_CORRECT",
        "PATCH_GET",
        "PATCH_VERSION_CONTROL",
        "VERSION_CONTROL",
    ] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .env("LC_ALL", "C")
        .args(["--batch", "--fuzz=5", "-p1"])
        .args(["--unified", "--get=0"])
        .args(["--no-backup-if-mismatch", "--reject-file=-"]);
    let output = run_limited(command, folder, patch).map_err(|error| match error.kind {
        ErrorKind::Unavailable => {
            SandboxError::unavailable("`patch`, which applies patches with fuzz, is not installed")
        }
        _ => error,
    })?;
    let output = accepted!(output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.ok {
        return Ok(Err(text));
    }
    // In batch mode, `patch` reverts an already applied patch instead of applying it.
    if text.contains("Assuming -R") {
        return Ok(Err("the patch appears to be already applied".to_owned()));
    }
    let telling =
        |line: &&str| line.contains(" succeeded at ") || line.contains("tripping trailing CRs");
    Ok(Ok(text
        .lines()
        .filter(telling)
        .map(|line| format!("patch: {}", line.trim()))
        .collect()))
}

fn difference(
    mut before: std::collections::BTreeMap<String, File>,
    after: std::collections::BTreeMap<String, File>,
) -> Files {
    let mut files = Files::new();
    for (path, file) in after {
        if before.remove(&path).as_ref() != Some(&file) {
            files.insert(path, Some(file));
        }
    }
    files.extend(before.into_keys().map(|path| (path, None)));
    files
}
