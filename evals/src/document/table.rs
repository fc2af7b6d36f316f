//! Sections and tables of a document.

use std::path::{Component, Path};

use serde::{Serialize, Serializer};

use super::Plot;

/// Maximum rows of a table that is open initially.
const MAX_OPEN_ROWS: usize = 12;

/// A section of a document.
#[derive(Serialize)]
pub struct Section {
    /// Id of the section, used for its anchor and plots.
    pub id: &'static str,
    /// Heading of the section.
    pub title: &'static str,
    /// Notes above the tables, one sentence or paragraph each.
    pub notes: Vec<String>,
    /// Plots above the tables of a page.
    pub plots: Vec<Plot>,
    /// Tables of the section, in display order.
    pub tables: Vec<Table>,
}

impl Section {
    /// Returns a section without notes and plots.
    pub fn new(id: &'static str, title: &'static str, tables: impl Into<Vec<Table>>) -> Section {
        Section {
            id,
            title,
            notes: Vec::new(),
            plots: Vec::new(),
            tables: tables.into(),
        }
    }

    /// Adds a note.
    pub fn note(self, text: impl Into<String>) -> Section {
        self.notes([text])
    }

    /// Adds notes.
    pub fn notes<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Section {
        self.notes.extend(texts.into_iter().map(Into::into));
        self
    }

    /// Adds the plots of a page. Its tables are open initially if the section is in `open`, or if they are short and there
    /// are no plots.
    pub fn with_plots(mut self, plots: Vec<Plot>, open: &[&str]) -> Section {
        let is_open = open.contains(&self.id);
        for table in &mut self.tables {
            table.is_open = is_open || plots.is_empty() && table.rows.len() <= MAX_OPEN_ROWS;
        }
        Section { plots, ..self }
    }
}

/// A table of a document.
#[derive(Serialize)]
pub struct Table {
    /// Caption above the table.
    pub caption: String,
    /// Columns, from left to right.
    pub columns: Vec<Column>,
    /// Rows of cells; each has one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether a page shows the table initially.
    pub is_open: bool,
}

/// A figure of a table: its title, and its text for a row.
pub type Figure<R> = (&'static str, fn(&R) -> String);

/// A column of a table.
#[derive(Serialize)]
pub struct Column {
    /// Heading of the column.
    pub title: String,
    /// Whether the column is right-aligned, for figures.
    pub right: bool,
    /// Whether the column is wide, for sentences.
    pub long: bool,
}

impl Column {
    /// Returns a left-aligned column of normal width.
    pub fn new(title: &str) -> Column {
        Column {
            title: title.to_owned(),
            right: false,
            long: false,
        }
    }
}

/// A cell of a table.
#[derive(Clone, Default, Serialize)]
pub struct Cell {
    /// Text of the cell, unescaped.
    pub text: String,
    /// Path below the results folder, to which a page links.
    #[serde(rename = "href", serialize_with = "serialize_href")]
    pub file: Option<String>,
}

fn serialize_href<S: Serializer>(file: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    file.as_deref().and_then(href).serialize(serializer)
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell {
            text: text.into(),
            file: None,
        }
    }
}

impl Table {
    /// Returns a table without columns and rows.
    pub fn new(caption: &str) -> Table {
        Table {
            caption: caption.to_owned(),
            columns: Vec::new(),
            rows: Vec::new(),
            is_open: false,
        }
    }

    /// Adds a left-aligned column of words.
    pub fn words(mut self, title: &str) -> Table {
        self.columns.push(Column::new(title));
        self
    }

    /// Adds a wide column of sentences.
    pub fn sentences(mut self, title: &str) -> Table {
        self.columns.push(Column {
            long: true,
            ..Column::new(title)
        });
        self
    }

    /// Adds a right-aligned column of figures for each title.
    pub fn figures<S: AsRef<str>>(mut self, titles: &[S]) -> Table {
        self.columns.extend(titles.iter().map(|title| Column {
            right: true,
            ..Column::new(title.as_ref())
        }));
        self
    }

    /// Adds a row, which must have one cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row of labels and figures.
    pub fn labelled<L: Into<Cell>, F: Into<Cell>>(
        &mut self,
        labels: impl IntoIterator<Item = L>,
        figures: impl IntoIterator<Item = F>,
    ) {
        let labels = labels.into_iter().map(Into::<Cell>::into);
        self.row(labels.chain(figures.into_iter().map(Into::into)));
    }
}

/// Returns a link to a file near the page. Returns `None` if the path is not below the results folder; only a path from
/// one results folder to another may begin with `..` (`move_logs` of the report).
pub fn href(path: &str) -> Option<String> {
    let components: Vec<Component<'_>> = Path::new(path).components().collect();
    let is_fit = |c: &Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
    let below = components
        .iter()
        .position(|c| *c != Component::ParentDir)
        .unwrap_or(components.len());
    if components[below..].is_empty() || !components[below..].iter().all(is_fit) {
        return None;
    }
    let mut href = ".".to_owned();
    for component in &components {
        href.push('/');
        for byte in component.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    href.push(char::from(*byte));
                }
                other => href.push_str(&format!("%{other:02X}")),
            }
        }
    }
    Some(href)
}

#[cfg(test)]
mod tests;
