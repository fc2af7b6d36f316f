//! Sections and tables of a document.

/// A section of a document.
pub struct Section {
    /// Id of the section, used for its anchor and plots.
    pub id: &'static str,
    /// Heading of the section.
    pub title: &'static str,
    /// Notes above the tables, one sentence or paragraph each.
    pub notes: Vec<String>,
    /// Tables of the section, in display order.
    pub tables: Vec<Table>,
}

impl Section {
    /// Returns a section without notes.
    pub fn new(id: &'static str, title: &'static str, tables: impl Into<Vec<Table>>) -> Section {
        Section {
            id,
            title,
            notes: Vec::new(),
            tables: tables.into(),
        }
    }

    /// Adds a note.
    pub fn note(mut self, text: impl Into<String>) -> Section {
        self.notes.push(text.into());
        self
    }
}

/// A table of a document.
pub struct Table {
    /// Caption above the table.
    pub caption: String,
    /// Columns, from left to right.
    pub columns: Vec<Column>,
    /// Rows of cells; each has one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// A figure of a table: its title, and its text for a row.
pub type Figure<R> = (&'static str, fn(&R) -> String);

/// A column of a table.
#[derive(serde::Serialize)]
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
#[derive(Clone, Default)]
pub struct Cell {
    /// Text of the cell, unescaped.
    pub text: String,
    /// Path below the results folder.
    pub file: Option<String>,
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

    /// Adds a row of a label and figures.
    pub fn labelled<T: Into<Cell>>(
        &mut self,
        label: impl Into<Cell>,
        figures: impl IntoIterator<Item = T>,
    ) {
        let figures = figures.into_iter().map(Into::into);
        self.row([label.into()].into_iter().chain(figures));
    }
}
