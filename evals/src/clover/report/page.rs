//! Renders the report as a self-contained page.

use super::{CloverReport, TITLE, tables};
use crate::document::html::{self, LAYOUT, Page, RenderError, STYLE, SystemView};

/// Renders the report as a page.
///
/// # Errors
///
/// Fails if the template does not match the page.
pub fn page(report: &CloverReport) -> Result<String, RenderError> {
    let names = names(report);
    let systems = names.iter().enumerate();
    let open = ["assertions", "targets", "blocks", "contexts", "answers"];
    let sections = report.sections().into_iter();
    let sections = sections.map(|section| html::section_view(section, Vec::new(), &open));
    let page = Page {
        title: TITLE,
        style: STYLE.into(),
        script: None,
        facts: &report.facts,
        systems_label: "Systems",
        systems: systems
            .map(|(at, name)| SystemView::new(at, name))
            .collect(),
        sections: sections.collect(),
        own: (),
    };
    page.render(LAYOUT)
}

/// Returns the names of the systems, including the form of their answers.
fn names(report: &CloverReport) -> Vec<String> {
    let mut names: Vec<String> = report
        .rows
        .iter()
        .map(|row| tables::system_name(&row.system, row.form))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
