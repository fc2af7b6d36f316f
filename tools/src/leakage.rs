//! Searches a place that should hold only the old code for new code. `toolbox peek` reads a [`Request`] as JSON from
//! stdin and writes its [`Findings`].
//!
//! The search covers all readable files. It finds files of the package under test by their last folder and name, and
//! objects of git. Archives (wheels, zip files) are not opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::workspace::read_itself;

/// Input of `toolbox peek`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Files of the new code to search for.
    pub wanted: Vec<NewFile>,
}

/// A file of the new code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFile {
    /// Path in its repository.
    pub path: String,
    /// Stripped lines that the new file has and the old one does not. A file that holds all of them is new code. If
    /// empty, only git's object name identifies the file.
    pub lines: Vec<String>,
    /// Name as a git object, 40 hex digits.
    pub blob: String,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Number of files searched.
    pub searched: u64,
    /// Paths of new code, sorted.
    pub places: Vec<String>,
}

/// Virtual file systems, which hold no ordinary files.
const EXCLUDED_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Size limit of a module in bytes; bigger files are skipped.
const MAX_FILE_LEN: u64 = 16 << 20;
/// Size limit of a pack index in bytes, at 30 bytes for each object; bigger files are skipped.
const MAX_INDEX_LEN: u64 = 512 << 20;

/// Searches everything below a folder, across file systems. Links are not followed.
pub fn find(root: &Path, request: &Request) -> Findings {
    let mut findings = Findings::default();
    let mut places = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        // An approach cannot read it either: it has no more rights than this process.
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                let mut excluded = EXCLUDED_FOLDERS.iter().map(Path::new);
                if !excluded.any(|excluded| path == excluded) {
                    folders.push(path);
                }
            } else if kind.is_file() {
                findings.searched += 1;
                if is_new(&path, &request.wanted) {
                    places.insert(path.to_string_lossy().into_owned());
                }
            }
        }
    }
    findings.places = places.into_iter().collect();
    findings
}

fn is_new(path: &Path, new_files: &[NewFile]) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    if name.ends_with(".idx") && path.parent().is_some_and(|p| p.ends_with("objects/pack")) {
        return is_in_pack(path, new_files);
    }
    new_files.iter().any(|file| {
        is_loose(path, name, &file.blob)
            || (!file.lines.is_empty()
                && matches_name(path, &file.path)
                && has_lines(path, &file.lines))
    })
}

/// Returns whether the path is the loose object `objects/ab/cdef…`.
fn is_loose(path: &Path, name: &str, blob: &str) -> bool {
    let (Some(folder), Some(file_name)) = (blob.get(..2), blob.get(2..)) else {
        return false;
    };
    name == file_name
        && path
            .parent()
            .is_some_and(|p| p.ends_with(PathBuf::from("objects").join(folder)))
}

/// Searches the index of a pack, which holds the names of its objects as bytes.
fn is_in_pack(path: &Path, new_files: &[NewFile]) -> bool {
    let Ok(Ok(index)) = read_itself(path, MAX_INDEX_LEN) else {
        return false;
    };
    new_files.iter().any(|file| {
        let name: Vec<u8> = (0..file.blob.len() / 2)
            .filter_map(|at| u8::from_str_radix(file.blob.get(2 * at..2 * at + 2)?, 16).ok())
            .collect();
        name.len() == 20 && index.windows(20).any(|part| part == name)
    })
}

/// Returns whether the last folder and the name match those of the file. The rest of the path differs once a package is
/// installed.
fn matches_name(path: &Path, file: &str) -> bool {
    let mut parts = file.rsplit('/');
    let (name, folder) = (parts.next(), parts.next());
    let mut there = path.iter().rev().filter_map(|part| part.to_str());
    there.next() == name && (folder.is_none() || there.next() == folder)
}

fn has_lines(path: &Path, lines: &[String]) -> bool {
    let Ok(Ok(content)) = read_itself(path, MAX_FILE_LEN) else {
        return false;
    };
    let text = String::from_utf8_lossy(&content);
    let there: BTreeSet<&str> = text.lines().map(str::trim).collect();
    lines.iter().all(|line| there.contains(line.as_str()))
}

#[cfg(test)]
mod tests;
