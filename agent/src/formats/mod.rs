//! Tolerant readers of the formats in which models write changes of files. Nothing here runs code or depends
//! on a model. Input is text and the old files; output is new files, with a list of repairs.

pub mod code_block;
pub mod function_blocks;
mod paths;
mod reindent;
pub mod snippets;
pub mod unified_diff;

use std::collections::BTreeMap;

use testwright_sandboxes::repository::Tree;

/// The files that a reply proposes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposedFiles {
    /// New contents by path; `None` for a deleted file.
    pub files: BTreeMap<String, Option<String>>,
    /// Deviations from the format that were repaired, one line each.
    pub repairs: Vec<String>,
}

impl ProposedFiles {
    /// Returns a file with the changes so far.
    fn text(&self, path: &str, old: &dyn OldFiles) -> Option<String> {
        let proposed = self.files.get(path).cloned().flatten();
        proposed.or_else(|| old.text(path))
    }

    /// Returns the path and the text of a file with the changes so far. If there is no such file, returns the only one
    /// that was probably meant.
    fn resolve(&mut self, path: String, old: &dyn OldFiles) -> (String, Option<String>) {
        let text = self.text(&path, old);
        if text.is_none()
            && let Some(meant) = paths::meant(&path, old)
        {
            self.repaired(format!("`{path}` is `{meant}`"));
            let text = self.text(&meant, old);
            return (meant, text);
        }
        (path, text)
    }

    /// Returns the number of characters in lines that the old files do not have. Moved lines do not count.
    pub fn added(&self, old: &dyn OldFiles) -> usize {
        let added = |(path, new): (&String, &Option<String>)| {
            let before = old.text(path).unwrap_or_default();
            let mut line_counts = BTreeMap::<&str, usize>::new();
            for line in before.lines() {
                *line_counts.entry(line).or_default() += 1;
            }
            let mut characters = 0;
            for line in new.as_deref().unwrap_or_default().lines() {
                match line_counts.get_mut(line) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => characters += line.chars().count() + 1,
                }
            }
            characters
        };
        self.files.iter().map(added).sum::<usize>()
    }

    /// Records a repair once.
    fn repaired(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.repairs.contains(&what) {
            self.repairs.push(what);
        }
    }
}

/// The reason why a reply cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormatError(pub String);

impl FormatError {
    /// Creates an error from the reason, in words for the model.
    pub fn new(why: impl ToString) -> FormatError {
        FormatError(why.to_string())
    }
}

/// The files of the old code.
pub trait OldFiles {
    /// Returns the text of a file; `None` if there is no such text file.
    fn text(&self, path: &str) -> Option<String>;
    /// Returns the paths of all files, relative to the repository.
    fn paths(&self) -> Vec<String>;
}

impl OldFiles for Tree {
    fn text(&self, path: &str) -> Option<String> {
        self.text(path).ok().flatten()
    }

    fn paths(&self) -> Vec<String> {
        self.paths().map(str::to_owned).collect()
    }
}

/// Files in memory, for tests and other callers.
impl OldFiles for BTreeMap<String, String> {
    fn text(&self, path: &str) -> Option<String> {
        self.get(path).cloned()
    }

    fn paths(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// Converts all line endings to `\n`.
fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
