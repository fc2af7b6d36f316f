//! `report.md`.

use super::Report;
use super::sections::{Labels, facts, sections};
use crate::document;

pub(super) fn markdown(report: &Report) -> String {
    let names: Vec<String> = report.summary.keys().cloned().collect();
    let labels = Labels {
        long: names.clone(),
        short: names,
    };
    let sections = sections(report, &labels);
    document::markdown("Evaluation", &facts(&report.run), &sections, "report.json")
}
