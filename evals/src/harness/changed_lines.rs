//! Determines which lines a code patch removes and adds, from its hunks.

#![allow(unreachable_pub)] // fuzz targets use these items

use std::collections::{BTreeMap, BTreeSet};

use testwright_sandboxes::repository::header_path;

/// Line numbers, starting at 1, by path.
pub type Lines = BTreeMap<String, BTreeSet<u32>>;

/// Lines that a patch changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedLines {
    /// Removed lines, numbered as in the old code.
    pub removed: Lines,
    /// Added lines, numbered as in the new code.
    pub added: Lines,
}

impl ChangedLines {
    /// Returns the changed lines in the Python files of a unified diff.
    pub fn from_patch(patch: &str) -> ChangedLines {
        let mut changed = ChangedLines::default();
        let mut reader = HunkReader::default();
        for line in patch.lines() {
            reader.line(line, &mut changed);
        }
        changed
    }
}

#[derive(Default)]
struct HunkReader {
    old: Option<String>,
    new: Option<String>,
    /// Next line number, then remaining lines of the hunk, each for the old and the new side.
    at: [u32; 2],
    left: [u32; 2],
}

impl HunkReader {
    fn line(&mut self, line: &str, changed: &mut ChangedLines) {
        if self.left == [0, 0] {
            if let Some(name) = line.strip_prefix("--- ") {
                self.old = header_path(name);
            } else if let Some(name) = line.strip_prefix("+++ ") {
                self.new = header_path(name);
            } else if let Some((at, lengths)) = line.strip_prefix("@@ -").and_then(ranges) {
                (self.at, self.left) = (at, lengths);
            }
            return;
        }
        let sides: &[usize] = match line.as_bytes().first() {
            Some(b'-') => {
                note(&mut changed.removed, self.old.as_ref(), self.at[0]);
                &[0]
            }
            Some(b'+') => {
                note(&mut changed.added, self.new.as_ref(), self.at[1]);
                &[1]
            }
            Some(b'\\') => &[],
            // Mail programs and editors strip the blank from an empty line.
            _ => &[0, 1],
        };
        for &side in sides {
            self.at[side] = self.at[side].saturating_add(1);
            self.left[side] = self.left[side].saturating_sub(1);
        }
    }
}

fn note(lines: &mut Lines, file: Option<&String>, line: u32) {
    if let Some(file) = file.filter(|file| file.ends_with(".py")) {
        lines.entry(file.clone()).or_default().insert(line);
    }
}

/// Parses the ranges of a hunk header, such as `1,5 +1,6 @@ def f():`.
fn ranges(text: &str) -> Option<([u32; 2], [u32; 2])> {
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(u32, u32)> {
        match text.split_once(',') {
            Some((at, many)) => Some((at.parse().ok()?, many.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let (old, new) = (range(old)?, range(new)?);
    Some(([old.0, new.0], [old.1, new.1]))
}

#[cfg(test)]
mod tests;
