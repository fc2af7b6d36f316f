//! Building blocks of reports: readable figures, tables, plots, and output formats.

mod files;
pub mod format;
pub mod html;
mod latex;
mod markdown;
mod spreadsheet;
pub mod svg;
mod table;

pub use files::{write_plots, write_tables};
pub use markdown::markdown;
pub use spreadsheet::{csv_table, text_cell};
pub use table::{Cell, Column, Figure, Section, Table, href};

/// Maximum characters of a text from data; the result files contain the full text.
const MAX_TEXT_LEN: usize = 4_000;

/// Width of all plots in SVG units, one pixel each if there is enough room.
pub const WIDTH: f64 = 380.0;

/// A plot with its caption.
#[derive(serde::Serialize)]
pub struct Plot {
    /// Words of the file name, such as the axis.
    #[serde(skip)]
    pub name: String,
    /// Caption of the plot, as plain text.
    pub caption: String,
    /// The plot as an SVG element.
    pub svg: String,
}
