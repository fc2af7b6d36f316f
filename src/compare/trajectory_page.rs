//! A run as a page: what the model was asked, what it answered, what its calls came to.

use std::path::Path;

use serde::Serialize;
use testwright_evals::document::html::{self, STYLE};
use testwright_evals::foreign_text;

use crate::agent::Outcome;
use crate::error::{Error, Result};
use crate::trajectory::{Entry, EntryKind, Event, entries};

/// Name of the page in the run's folder.
pub const FILE: &str = "trajectory.html";

const TEMPLATE: &str = include_str!("trajectory.html");
const OWN_STYLE: &str = include_str!("trajectory.css");

/// Characters of one text; the trajectory has it whole.
const LONGEST: usize = 20_000;

#[derive(Serialize)]
struct Page<'e> {
    title: &'e str,
    style: String,
    style_hash: String,
    outcome: String,
    patch: Option<&'e str>,
    entries: Vec<EntryView>,
}

#[derive(Serialize)]
struct EntryView {
    kind: &'static str,
    title: String,
    text: String,
    /// Shown without being asked for.
    is_open: bool,
}

/// Characters of an answer that is shown without being asked for.
const SHORT: usize = 400;

impl EntryView {
    fn of(entry: Entry) -> Self {
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

pub fn write(folder: &Path, name: &str, events: &[Event], outcome: &Outcome) -> Result<()> {
    let path = folder.join(FILE);
    let style = format!("{STYLE}{OWN_STYLE}");
    let page = Page {
        title: name,
        style_hash: html::hash(&style),
        style,
        outcome: outcome.summary(),
        patch: match outcome {
            Outcome::Accepted { patch, .. } | Outcome::Refused { patch, .. } => Some(patch),
            _ => None,
        },
        entries: entries(events).into_iter().map(EntryView::of).collect(),
    };
    let text = |text: &str| foreign_text::lines(&cut(text));
    let page = html::render_with(FILE, TEMPLATE, &page, text)
        .map_err(|error| Error::infrastructure(format!("make {}", path.display())).cause(error))?;
    let written = super::replace(&path, page.as_bytes());
    written.map_err(|error| Error::io(format!("write {}", path.display()), &error))?;
    Ok(())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}\n… (cut: trajectory.jsonl has it whole)", &text[..end]),
        None => text.to_owned(),
    }
}
