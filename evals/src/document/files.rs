//! Writes tables and plots of a report as files of their own, for papers.

use std::io;
use std::path::Path;

use super::html::STANDALONE_STYLE;
use super::latex::latex;
use super::{Plot, Section, Table};
use crate::folder::write_below;

/// Maximum rows of a table that is written. Longer ones list instances.
const MAX_ROWS: usize = 100;

/// Writes the tables of figures in a document to `TABLES/SECTION.tex`; the names of further tables of a section end with
/// their captions. Tables with sentences are left out.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_tables(folder: &Path, tables: &str, sections: &[Section]) -> io::Result<()> {
    for section in sections {
        for (at, table) in section.tables.iter().enumerate() {
            let is_list = table.columns.iter().any(|column| column.long);
            if !is_list && !table.rows.is_empty() && table.rows.len() <= MAX_ROWS {
                let path = format!("{tables}/{}.tex", table_name(section, at));
                write_below(folder, &path, latex(table).as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Writes the plots of a section to `plots/SECTION-NAME.svg`.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_plots(folder: &Path, section: &str, plots: &[Plot]) -> io::Result<()> {
    for plot in plots {
        let path = format!("plots/{section}-{}.svg", caption_words(&plot.name));
        write_below(folder, &path, standalone(&plot.svg).as_bytes())?;
    }
    Ok(())
}

fn table_name(section: &Section, at: usize) -> String {
    let words = |table: &Table| caption_words(&table.caption);
    let (id, own) = (section.id, words(&section.tables[at]));
    let mut before = section.tables[..at].iter();
    match at {
        0 => id.to_owned(),
        _ if before.any(|table| words(table) == own) => format!("{id}-{own}-{}", at + 1),
        _ => format!("{id}-{own}"),
    }
}

/// Maximum length of the words of a caption in a file name.
const MAX_CAPTION_LEN: usize = 60;

/// Returns the first words of a caption in ASCII, joined by hyphens.
fn caption_words(caption: &str) -> String {
    let mut name = String::new();
    let words = caption.split(|c: char| !c.is_ascii_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        if name.len() + word.len() >= MAX_CAPTION_LEN {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_ascii_lowercase());
    }
    name
}

/// Converts an SVG element of a page to a file, with the colours of the light page.
fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{open}><style>{STANDALONE_STYLE}</style>{rest}\n")
}

#[cfg(test)]
mod tests;
