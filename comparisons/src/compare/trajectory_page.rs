//! Renders a run as a page: the requests to the model, its answers, and the results of its calls.

use std::path::{Path, PathBuf};

use serde::Serialize;
use testwright_evals::document::html::{self, Page, STYLE};
use testwright_evals::untrusted_text;

use crate::record_file::write_file;
use testwright_agent::agent::Outcome;
use testwright_agent::trajectory::entry_view::{self, EntryView};
use testwright_agent::trajectory::{Event, entries};
use testwright_config::error::{Error, Result};

/// File name of the page in the run's folder.
pub(super) const FILE: &str = "trajectory.html";

const TEMPLATE: &str = include_str!("trajectory.html");

#[derive(Serialize)]
struct Trajectory<'e> {
    outcome: String,
    patch: Option<&'e str>,
    entries: Vec<EntryView>,
}

/// Writes the page of a run into its folder, and returns its path.
///
/// # Errors
///
/// Fails if the page cannot be rendered or written.
pub fn write(folder: &Path, name: &str, events: &[Event], outcome: &Outcome) -> Result<PathBuf> {
    let path = folder.join(FILE);
    let page = Page {
        title: name,
        style: format!("{STYLE}{}", entry_view::STYLE).into(),
        script: None,
        facts: &[],
        systems_label: "",
        systems: Vec::new(),
        sections: Vec::new(),
        own: Trajectory {
            outcome: outcome.summary(),
            patch: outcome.written_patch(),
            entries: entries(events)
                .into_iter()
                .map(EntryView::from_entry)
                .collect(),
        },
    };
    let text = |text: &str| untrusted_text::escape_lines(&entry_view::cut(text));
    let page = html::render_with(FILE, TEMPLATE, &page, text).map_err(|error| {
        Error::infrastructure(format!("render {}", path.display())).cause(error)
    })?;
    write_file(&path, page.as_bytes())?;
    Ok(path)
}
