//! The formats in which models write changes of files, read as models really write them. Nothing here runs code or knows
//! of a model: text and the old files in, new files out, with what had to be repaired on the way.

pub mod code_block;
pub mod function_blocks;
mod paths;
mod reindent;
pub mod snippets;
pub mod unified_diff;

use std::collections::BTreeMap;

use testwright_sandboxes::repository::Tree;

/// Files as a reply wants them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposedFiles {
    /// New content by path; `None` for a file that goes.
    pub files: BTreeMap<String, Option<String>>,
    /// What was not as the format has it, one line each.
    pub repairs: Vec<String>,
}

impl ProposedFiles {
    /// A file as it is so far.
    fn text(&self, path: &str, old: &dyn OldFiles) -> Option<String> {
        let proposed = self.files.get(path).cloned().flatten();
        proposed.or_else(|| old.text(path))
    }

    /// Characters of the lines that the old files do not have; a line that only moves is none of them.
    pub fn added(&self, old: &dyn OldFiles) -> usize {
        let added = |(path, new): (&String, &Option<String>)| {
            let before = old.text(path).unwrap_or_default();
            let mut known = BTreeMap::<&str, usize>::new();
            for line in before.lines() {
                *known.entry(line).or_default() += 1;
            }
            let mut characters = 0;
            for line in new.as_deref().unwrap_or_default().lines() {
                match known.get_mut(line) {
                    Some(left) if *left > 0 => *left -= 1,
                    _ => characters += line.chars().count() + 1,
                }
            }
            characters
        };
        self.files.iter().map(added).sum::<usize>()
    }

    /// A repair is told once.
    fn repaired(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.repairs.contains(&what) {
            self.repairs.push(what);
        }
    }
}

/// Why a reply cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormatError(pub String);

impl FormatError {
    pub fn new(why: impl ToString) -> FormatError {
        FormatError(why.to_string())
    }
}

/// The files of the old code.
pub trait OldFiles {
    /// `None` if there is no such text file.
    fn text(&self, path: &str) -> Option<String>;
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

/// For tests, and wherever the files are at hand.
impl OldFiles for BTreeMap<String, String> {
    fn text(&self, path: &str) -> Option<String> {
        self.get(path).cloned()
    }

    fn paths(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// Line ends of one kind.
fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
