//! Renders documents as self-contained pages with light and dark styles. All data is escaped, and the page's content
//! security policy allows no scripts but its own.

use std::borrow::Cow;

use base64::Engine as _;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::format::letter;
use super::{MAX_TEXT_LEN, Section};
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
    pub sections: Vec<Section>,
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
