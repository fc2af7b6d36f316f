//! An entry of a trajectory as pages show it: folded where it is long.

use serde::Serialize;

use super::{CALL, Change, Entry, EntryKind};

/// The style that its kinds have.
pub const STYLE: &str = include_str!("entries.css");

/// Characters of one text; the trajectory has it whole.
const MAX_SHOWN_LEN: usize = 20_000;
/// Characters of an answer that is shown without being asked for.
const SHORT: usize = 400;

#[derive(Debug, Serialize)]
pub struct EntryView {
    pub kind: &'static str,
    pub title: String,
    pub text: String,
    /// The same line by line, where calls with edits are in it.
    pub lines: Vec<EntryLine>,
    /// Shown without being asked for.
    pub is_open: bool,
}

#[derive(Debug, Serialize)]
pub struct EntryLine {
    pub kind: &'static str,
    pub text: String,
}

impl EntryView {
    pub fn of(entry: Entry) -> Self {
        let (kind, is_open) = match entry.kind {
            EntryKind::Asked => ("asked", false),
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

/// What a call removes and adds is told apart; empty where none does.
fn lines(text: &str) -> Vec<EntryLine> {
    let mut in_call = false;
    let line = |line: &str| {
        in_call |= line.starts_with(CALL);
        let kind = match Change::of(line) {
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

/// A text that is not longer than a page shows.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_LEN) {
        Some((end, _)) => format!("{}\n… (cut: trajectory.jsonl has it whole)", &text[..end]),
        None => text.to_owned(),
    }
}
