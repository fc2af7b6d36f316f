//! What reports are made of: figures as people read them, tables, plots, and the forms that they are written in.

pub mod format;
pub mod html;
mod markdown;
pub mod svg;
mod table;

pub use markdown::markdown;
pub use table::{Cell, Column, Section, Table};

/// Characters of a text that comes from data; the files of results have it whole.
const MAX_TEXT_LEN: usize = 4_000;

/// Width of all plots in units that are a pixel where there is room.
pub const WIDTH: f64 = 380.0;

/// A plot with what it shows.
#[derive(serde::Serialize)]
pub struct Plot {
    pub caption: String,
    pub svg: String,
}
