//! An entry of a trajectory as pages show it: folded where it is long.

use serde::Serialize;

use super::{Entry, EntryKind};

/// The style that its kinds have.
pub const STYLE: &str = include_str!("entries.css");

/// Characters of one text; the trajectory has it whole.
const LONGEST: usize = 20_000;
/// Characters of an answer that is shown without being asked for.
const SHORT: usize = 400;

#[derive(Debug, Serialize)]
pub struct EntryView {
    pub kind: &'static str,
    pub title: String,
    pub text: String,
    /// Shown without being asked for.
    pub is_open: bool,
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
            title: entry.title,
            text: entry.text,
            is_open,
        }
    }
}

/// A text that is not longer than a page shows.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}\n… (cut: trajectory.jsonl has it whole)", &text[..end]),
        None => text.to_owned(),
    }
}
