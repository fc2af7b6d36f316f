//! Renders the report as a self-contained page.

use super::{CloverReport, TITLE};
use crate::document::html::{LAYOUT, Page, RenderError, STYLE, SystemView};

/// Renders the report as a page.
///
/// # Errors
///
/// Fails if the template does not match the page.
pub fn page(report: &CloverReport) -> Result<String, RenderError> {
    let names = report.systems();
    let systems = names.iter().enumerate();
    let open = ["assertions", "targets", "blocks", "contexts", "answers"];
    let sections = report.sections().into_iter();
    let sections = sections.map(|section| section.with_plots(Vec::new(), &open));
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
