//! Plots as inline SVG. Each stands for a table that is on the page too, is narrow enough for a phone, takes its colours
//! from the page's style sheet, and tells prediction sets apart by letters and not by colour alone.

mod agreement;
mod coverage;
mod forest_plot;
mod sankey;
mod slowest;

use super::Report;
use crate::document::{Plot, WIDTH};

/// The plots of a section. `labels` as for its tables.
pub(super) fn plots(section: &str, report: &Report, labels: &[String]) -> Vec<Plot> {
    match section {
        "rates" => forest_plot::rates(report),
        "agreement" => agreement::plots(report, labels),
        "coverage" => coverage::plots(report, labels),
        "flows" => sankey::plots(report, labels),
        "repositories" => forest_plot::repositories(report),
        "lengths" => forest_plot::lengths(report),
        "time" => slowest::plots(report),
        _ => Vec::new(),
    }
}
