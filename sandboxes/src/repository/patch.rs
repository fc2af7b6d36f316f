//! Checks whether a patch applies to the clean base commit.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::accepted::{Accepted, accepted};
use super::git::Git;
use super::patch_base::{Base, Files, is_plain};
use super::process::{self, GitOutput, ProcessLimits};
use super::{Source, limits};
use crate::error::ErrorKind;
use crate::sandbox::Result;

/// Runs `git apply --check` in a folder that contains the base commit's files that the patch changes.
///
/// The inner error is git's reason, suitable for a model.
///
/// # Errors
///
/// Fails if the patch could not be checked, for example because the tree cannot be read or git cannot be run.
pub fn apply_check(source: &Source, patch: &str) -> Accepted<()> {
    accepted!(check_text(patch));
    let tree = source.tree()?;
    let folder = tempfile::tempdir()?;
    let none = Files::new();
    let base = Base::new(&tree, &none);
    accepted!(write_base_files(&base, patch, folder.path())?);
    git_apply(folder.path(), patch, &["--check"])
}

/// Runs `git apply` in a folder that testwright created.
pub(super) fn git_apply(folder: &Path, patch: &str, options: &[&str]) -> Accepted<()> {
    let output = run_limited(apply_command(folder, options), folder, patch)?;
    Ok(output.and_then(apply_result))
}

/// Returns a `git apply` that reads a patch from its standard input. It does not treat the folder as a repository.
pub(super) fn apply_command(folder: &Path, options: &[&str]) -> Command {
    let mut command = Git::nowhere().command();
    command
        .current_dir(folder)
        .args(["-c", "core.autocrlf=false", "-c", "core.symlinks=true"])
        .args([
            "-c",
            "core.fileMode=true",
            "-c",
            "apply.ignoreWhitespace=no",
        ])
        .args(["apply", "--whitespace=nowarn"])
        .args(options)
        .arg("-");
    command
}

/// Returns git's reason if the patch does not apply.
pub(super) fn apply_result(output: GitOutput) -> std::result::Result<(), String> {
    match output.ok {
        true => Ok(()),
        false => Err(output.stderr.replace("error: ", "")),
    }
}

/// Runs a program that applies a patch in a folder. The inner error says which limit the patch exceeds.
pub(super) fn run_limited(command: Command, folder: &Path, patch: &str) -> Accepted<GitOutput> {
    let bounds = ProcessLimits {
        folder: Some((folder.to_owned(), limits::PATCHED)),
        ..ProcessLimits::default()
    };
    let output = match process::run(command, patch.as_bytes(), &bounds) {
        Ok(output) => output,
        Err(error) if error.kind == ErrorKind::Input => return Ok(Err(error.message)),
        Err(error) => return Err(error),
    };
    // The program may have ended before its output was measured.
    if process::size(folder, limits::PATCHED) > limits::PATCHED {
        let max_size = limits::human_size(limits::PATCHED);
        return Ok(Err(format!("the patch would write more than {max_size}")));
    }
    Ok(Ok(output))
}

/// Returns the reason if a patch is rejected without trying it.
pub(super) fn check_text(patch: &str) -> std::result::Result<(), String> {
    if patch.trim().is_empty() {
        return Err("the patch is empty".to_owned());
    }
    // git's own message advises one of its options, which users cannot pass here.
    if !patch.lines().any(is_file_header) {
        return Err("it contains no diff".to_owned());
    }
    if patch.len() as u64 > limits::PATCH {
        let max_size = limits::human_size(limits::PATCH);
        return Err(format!("the patch is larger than {max_size}"));
    }
    Ok(())
}

fn is_file_header(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("+++ ")
}

/// Returns the bytes that the patch announces but does not contain: copies of files, and compressed binary files.
fn announced(base: &Base<'_>, patch: &str) -> u64 {
    let number = |text: &str| text.trim_end().parse::<u64>().unwrap_or(0);
    let size = |path: &str| base.size(&unquote(path.trim_end_matches('\r')));
    let sizes = patch.lines().map(|line| {
        let after_prefix = |start: &str| line.strip_prefix(start);
        after_prefix("literal ")
            .or(after_prefix("delta "))
            .map(number)
            .or(after_prefix("copy from ")
                .or(after_prefix("rename from "))
                .map(size))
            .unwrap_or(0)
    });
    sizes.fold(0, u64::saturating_add)
}

/// Writes the files that the patch changes into a folder. The inner error says if they, and the announced ones, exceed
/// the limit.
pub(super) fn write_base_files(base: &Base<'_>, patch: &str, folder: &Path) -> Accepted<()> {
    let paths = touched_paths(patch);
    let mut bytes = announced(base, patch);
    for path in paths {
        bytes = bytes.saturating_add(base.size(&path));
        if bytes > limits::PATCHED {
            let max_size = limits::human_size(limits::PATCHED);
            return Ok(Err(format!(
                "the files that the patch changes are larger than {max_size} in total"
            )));
        }
        base.materialise(&path, folder)?;
    }
    // A submodule that is not checked out is an empty folder, without which git does not move its pointer.
    for path in submodules(patch).into_iter().filter(|p| is_plain(p)) {
        make_folder(folder, &path)?;
    }
    Ok(Ok(()))
}

/// Creates a folder below another, unless a file or a link is in the way.
fn make_folder(folder: &Path, path: &str) -> Result<()> {
    let ends = path.match_indices('/').map(|(i, _)| i).chain([path.len()]);
    for end in ends {
        let part = folder.join(&path[..end]);
        match part.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Ok(()),
            Err(_) => std::fs::create_dir(part)?,
        }
    }
    Ok(())
}

/// Returns the paths of submodules whose pointer the patch moves or removes.
fn submodules(patch: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut header = None;
    for line in patch.lines() {
        let line = line.trim_end_matches('\r');
        if let Some(names) = line.strip_prefix("diff --git ") {
            header = strip_prefix_folder(split_header_names(names).0);
        }
        let pointer = line.starts_with("index ") && line.ends_with(" 160000");
        if pointer || line == "deleted file mode 160000" || line == "old mode 160000" {
            paths.extend(header.take());
        }
    }
    paths
}

/// Returns all paths that a header of the patch may name. Extra paths do no harm.
pub fn touched_paths(patch: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for line in patch.lines() {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            let (old, new) = split_header_names(rest.trim_end_matches('\r'));
            paths.extend([old, new].into_iter().filter_map(strip_prefix_folder));
        } else if let Some(rest) = line
            .strip_prefix("--- ")
            .or_else(|| line.strip_prefix("+++ "))
        {
            paths.extend(header_path(rest));
        } else {
            for start in ["rename from ", "rename to ", "copy from ", "copy to "] {
                if let Some(rest) = line.strip_prefix(start) {
                    paths.insert(unquote(rest.trim_end_matches('\r')));
                }
            }
        }
    }
    paths
}

/// Splits the two names of a header `diff --git OLD NEW`. Each may contain blanks, with or without quotes.
pub(super) fn split_header_names(names: &str) -> (&str, &str) {
    if names.starts_with('"') {
        let mut escaped = false;
        let end = names.bytes().skip(1).position(|byte| {
            let end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            end
        });
        // The second name follows the closing quote.
        let (old, new) = names.split_at(end.map_or(names.len(), |end| end + 2));
        return (old, new.trim_start_matches(' '));
    }
    if names.ends_with('"')
        && let Some(middle) = names.find(" \"")
    {
        return (&names[..middle], &names[middle + 1..]);
    }
    // Unquoted names differ only in the first letter, unless later lines name them.
    let middle = names.len() / 2;
    if names.as_bytes().get(middle) == Some(&b' ') {
        return (&names[..middle], &names[middle + 1..]);
    }
    names.rsplit_once(' ').unwrap_or((names, ""))
}

/// Returns the path in a header line after `--- ` or `+++ `, without `a/` or `b/` and git's quotes. Returns `None` for
/// `/dev/null`.
pub fn header_path(name: &str) -> Option<String> {
    // Some programs append a tab and a date.
    strip_prefix_folder(name.split('\t').next().unwrap_or(name))
}

/// Returns the path without `a/` or `b/`.
fn strip_prefix_folder(name: &str) -> Option<String> {
    let name = unquote(name.trim_end_matches('\r'));
    let (_, path) = name.split_once('/')?;
    (name != "/dev/null").then(|| path.to_owned())
}

/// Undoes git's quoting of unusual names: `"a/\303\244"`.
pub(super) fn unquote(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'3') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = rest.next_if(|b| (b'0'..=b'7').contains(b)) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                bytes.extend(u8::try_from(value));
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
