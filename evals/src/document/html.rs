//! Renders documents as self-contained pages with light and dark styles. All data is escaped, and the page's content
//! security policy allows no scripts but its own.

use std::borrow::Cow;
use std::path::{Component, Path};

use base64::Engine as _;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::format::letter;
use super::{Cell, Column, MAX_TEXT_LEN, Plot, Section, Table};
use crate::untrusted_text;

/// Base layout of reports; templates extend it as `base.html`.
pub const LAYOUT: &str = include_str!("page.html");
/// Base style sheet of all pages.
pub const STYLE: &str = include_str!("page.css");

/// Style of plots in files of their own, without variables, which many programs do not support.
pub(super) const STANDALONE_STYLE: &str = "svg{background:#fff;font-family:sans-serif}text{fill:#1d2126;font-size:12px}\
    .axis{fill:#565e68;font-size:11px}.letter{font-weight:700;font-size:11px}.grid{stroke:#e6e8e4;stroke-width:1}\
    .whisker{stroke-width:2;stroke-opacity:0.75}.s0{fill:#1f62b8;stroke:#1f62b8}.s1{fill:#b4451b;stroke:#b4451b}\
    .s2{fill:#25773a;stroke:#25773a}.s3{fill:#7c3fa6;stroke:#7c3fa6}.s4{fill:#846300;stroke:#846300}\
    .s5{fill:#0b6f80;stroke:#0b6f80}";

/// A section of a page.
#[derive(Serialize)]
pub struct SectionView {
    /// Id of the section, used for its anchor.
    pub id: &'static str,
    /// Heading of the section.
    pub title: &'static str,
    /// Notes above the plots and tables, as plain text.
    pub notes: Vec<String>,
    /// Plots, above the tables.
    pub plots: Vec<Plot>,
    /// Tables of the section.
    pub tables: Vec<TableView>,
}

/// A table of a page.
#[derive(Serialize)]
pub struct TableView {
    /// Caption of the table, as plain text.
    pub caption: String,
    /// Columns, from left to right.
    pub columns: Vec<Column>,
    /// Rows of cells; each has one cell per column.
    pub rows: Vec<Vec<Link>>,
    /// Whether the table is open initially.
    pub is_open: bool,
}

/// The content of a cell, which may be a link.
#[derive(Serialize)]
pub struct Link {
    /// Text of the cell.
    pub text: String,
    /// Relative URL of a file; `None` if the cell is not a link.
    pub href: Option<String>,
}

/// Data of a page in the layout of `page.html`; a template may extend it with its own fields.
#[derive(Serialize)]
pub struct Page<'p, T> {
    /// Title and heading of the page.
    pub title: &'p str,
    /// [`STYLE`], with the page's own additions.
    pub style: Cow<'static, str>,
    /// Script of the page; `None` if it needs none.
    pub script: Option<&'static str>,
    /// Labels and values that are listed at the top.
    pub facts: &'p [(String, String)],
    /// Label of the list of systems, for screen readers.
    pub systems_label: &'static str,
    /// Cards of the compared systems or prediction sets.
    pub systems: Vec<SystemView>,
    /// Sections in display order.
    pub sections: Vec<SectionView>,
    /// Fields for the page's own template. `rows` is the table of all instances.
    #[serde(flatten)]
    pub own: T,
}

/// A compared system or prediction set, as a card.
#[derive(Serialize)]
pub struct SystemView {
    /// Letter of the system in plots and narrow columns.
    pub letter: String,
    /// CSS class that gives the system its colour.
    pub class: String,
    /// Name of the system or prediction set.
    pub name: String,
    /// Headline figure, formatted; `None` shows none.
    pub figure: Option<String>,
    /// Line of details below the figure; `None` shows none.
    pub about: Option<String>,
}

impl SystemView {
    /// Returns a card without figures; `at` is the position that gives it its letter and colour.
    pub fn new(at: usize, name: &str) -> Self {
        SystemView {
            letter: letter(at),
            class: class(at),
            name: name.to_owned(),
            figure: None,
            about: None,
        }
    }
}

/// Returns the class that gives a system its colour.
pub fn class(at: usize) -> String {
    format!("s{}", at % 6)
}

/// A template that does not fit its page.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct RenderError(#[source] minijinja::Error);

impl<T: Serialize> Page<'_, T> {
    /// Renders the page. Texts from data are put on one line and shortened.
    ///
    /// # Errors
    ///
    /// Fails if the template does not match the page.
    pub fn render(&self, template: &str) -> Result<String, RenderError> {
        render_with("page.html", template, self, |text| {
            untrusted_text::excerpt(text, MAX_TEXT_LEN)
        })
    }
}

/// Renders a page from its template. `format_text` prepares each text for display; the result is then escaped.
///
/// # Errors
///
/// Fails if the template does not match the page.
pub fn render_with(
    name: &str,
    template: &str,
    page: &impl Serialize,
    format_text: impl Fn(&str) -> String + Send + Sync + 'static,
) -> Result<String, RenderError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(move |out, state, value| match value.as_str() {
        // Style, script and plots come from this program and are not escaped.
        Some(text) if !value.is_safe() => {
            minijinja::escape_formatter(out, state, &Value::from(format_text(text)))
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.add_filter("hash", |text: &str| hash(text));
    environment
        .add_template("base.html", LAYOUT)
        .and_then(|()| environment.render_named_str(name, template, Value::from(Serde(page))))
        .map_err(RenderError)
}

/// Returns a hash that identifies a script or a style in a content security policy.
pub fn hash(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text))
}

/// Builds the view of a section with its plots. Tables of the sections in `open` are open initially.
pub fn section_view(section: Section, plots: Vec<Plot>, open: &[&str]) -> SectionView {
    let is_open =
        |table: &Table| open.contains(&section.id) || plots.is_empty() && table.rows.len() <= 12;
    let tables = section.tables.into_iter().map(|table| TableView {
        is_open: is_open(&table),
        caption: table.caption,
        columns: table.columns,
        rows: table
            .rows
            .into_iter()
            .map(|row| row.into_iter().map(link).collect())
            .collect(),
    });
    SectionView {
        id: section.id,
        title: section.title,
        notes: section.notes,
        tables: tables.collect(),
        plots,
    }
}

fn link(cell: Cell) -> Link {
    Link {
        href: cell.file.as_deref().and_then(href),
        text: cell.text,
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
mod tests {
    use super::*;

    #[test]
    fn links_stay_near_the_page() {
        let link = |path: &str| href(path);
        assert_eq!(
            link("logs/a b/\"x\".txt"),
            Some("./logs/a%20b/%22x%22.txt".to_owned())
        );
        assert_eq!(
            link("javascript:alert(1)"),
            Some("./javascript%3Aalert%281%29".to_owned())
        );
        assert_eq!(link("../b/logs/x"), Some("./../b/logs/x".to_owned()));
        for path in ["/etc/passwd", "", "..", "logs/../../x"] {
            assert_eq!(link(path), None, "{path}");
        }
    }
}
