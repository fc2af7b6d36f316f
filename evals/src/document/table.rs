//! Sections and tables of a document.

pub struct Section {
    /// Id of the section, used for its anchor and plots.
    pub id: &'static str,
    pub title: &'static str,
    pub notes: Vec<String>,
    pub tables: Vec<Table>,
}

impl Section {
    pub fn new(id: &'static str, title: &'static str, tables: impl Into<Vec<Table>>) -> Section {
        Section {
            id,
            title,
            notes: Vec::new(),
            tables: tables.into(),
        }
    }

    pub fn note(mut self, text: impl Into<String>) -> Section {
        self.notes.push(text.into());
        self
    }
}

pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(serde::Serialize)]
pub struct Column {
    pub title: String,
    /// Whether the column is right-aligned, for figures.
    pub right: bool,
    /// Whether the column is wide, for sentences.
    pub long: bool,
}

impl Column {
    pub fn new(title: &str) -> Column {
        Column {
            title: title.to_owned(),
            right: false,
            long: false,
        }
    }
}

#[derive(Clone, Default)]
pub struct Cell {
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
    pub fn new(caption: &str) -> Table {
        Table {
            caption: caption.to_owned(),
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub fn words(mut self, title: &str) -> Table {
        self.columns.push(Column::new(title));
        self
    }

    pub fn sentences(mut self, title: &str) -> Table {
        self.columns.push(Column {
            long: true,
            ..Column::new(title)
        });
        self
    }

    pub fn figures<S: AsRef<str>>(mut self, titles: &[S]) -> Table {
        self.columns.extend(titles.iter().map(|title| Column {
            right: true,
            ..Column::new(title.as_ref())
        }));
        self
    }

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
