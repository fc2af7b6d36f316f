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
mod tests {
    use super::*;

    #[test]
    fn hunk_at_the_maximum_line_is_read() {
        let patch = "--- a/a.py\n+++ b/a.py\n@@ -4294967295,2 +4294967295,2 @@\n-a\n-b\n+c\n+d\n";
        let changed = ChangedLines::from_patch(patch);
        assert_eq!(changed.added.keys().collect::<Vec<_>>(), ["a.py"]);
    }

    #[test]
    fn quoted_file_names_are_unescaped() {
        let patch = "--- \"a/\\303\\244.py\"\n+++ \"b/\\r\\a\\\".py\"\n@@ -1 +1 @@\n-a\n+b\n";
        let changed = ChangedLines::from_patch(patch);
        let files: Vec<_> = changed.added.keys().chain(changed.removed.keys()).collect();
        assert_eq!(files, ["\r\u{7}\".py", "ä.py"]);
    }

    #[test]
    fn lines_are_counted_per_side() {
        let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -3,4 +3,5 @@ def f():\n x\n-y\n+--- a\n+z\n \n w\n\
                     @@ -20 +21,2 @@\n-q\n\\ No newline at end of file\n+q\n+r\n\
                     diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-a\n+b\n\
                     diff --git a/n.py b/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/n.py\t2020\n@@ -0,0 +1,2 @@\n+a\n+b\n";
        let changed = ChangedLines::from_patch(patch);
        let lines = |set: &Lines, file: &str| set[file].iter().copied().collect::<Vec<_>>();
        assert_eq!(lines(&changed.removed, "a.py"), [4, 20]);
        assert_eq!(lines(&changed.added, "a.py"), [4, 5, 21, 22]);
        assert_eq!(lines(&changed.added, "n.py"), [1, 2]);
        assert_eq!(changed.added.len() + changed.removed.len(), 3);
    }
}
