//! An entry of a trajectory as shown on pages, folded if it is long.

use serde::Serialize;

use super::{CALL, Change, Entry, EntryKind};

/// Style sheet for the kinds of entries.
pub const STYLE: &str = include_str!("entries.css");

/// Maximum characters of one text; the trajectory has the full text.
const MAX_SHOWN_LEN: usize = 20_000;
/// Maximum characters of an answer that is shown unfolded.
const SHORT: usize = 400;

/// An entry, as a page shows it.
#[derive(Debug, Serialize)]
pub struct EntryView {
    /// `asked`, `reply`, `answer` or `stage`.
    pub kind: &'static str,
    /// Title in one line.
    pub title: String,
    /// Complete text of the entry.
    pub text: String,
    /// Text line by line, if it has calls with edits.
    pub lines: Vec<EntryLine>,
    /// Whether it is shown unfolded.
    pub is_open: bool,
}

/// A line of an entry.
#[derive(Debug, Serialize)]
pub struct EntryLine {
    /// `removed`, `added` or `same`.
    pub kind: &'static str,
    /// Text of the line.
    pub text: String,
}

impl EntryView {
    /// Prepares an entry for a page.
    pub fn from_entry(entry: Entry) -> Self {
        let (kind, is_open) = match entry.kind {
            EntryKind::Prompt => ("asked", false),
            EntryKind::Reply => ("reply", true),
            EntryKind::Answer => ("answer", entry.text.len() < SHORT),
            EntryKind::Stage => ("stage", true),
        };
        EntryView {
            kind,
            lines: match entry.kind {
                EntryKind::Reply => lines(&entry.text),
                _ => Vec::new(),
            },
            title: entry.title,
            text: entry.text,
            is_open,
        }
    }
}

/// Marks the lines that a call removes and adds; empty for other texts.
fn lines(text: &str) -> Vec<EntryLine> {
    let mut in_call = false;
    let line = |line: &str| {
        in_call |= line.starts_with(CALL);
        let kind = match Change::from_line(line) {
            Change::Removed if in_call => "removed",
            Change::Added if in_call => "added",
            _ => "same",
        };
        EntryLine {
            kind,
            text: line.to_owned(),
        }
    };
    let lines: Vec<EntryLine> = cut(text).lines().map(line).collect();
    match lines.iter().any(|line| line.kind != "same") {
        true => lines,
        false => Vec::new(),
    }
}

/// Cuts a text to the length that a page shows.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_LEN) {
        Some((end, _)) => format!(
            "{}\n… (cut: trajectory.jsonl has the full text)",
            &text[..end]
        ),
        None => text.to_owned(),
    }
}
