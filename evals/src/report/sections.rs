//! Converts the report to titles, remarks and tables, as shown in `report.md` and `report.html`.

mod tables;

use super::{GradingReport, RunMetadata};
use crate::document::format::seconds;
use crate::document::{Section, Table};

/// Display names of the prediction sets, in the order of the report.
pub(super) struct Labels {
    /// Names for column titles.
    pub long: Vec<String>,
    /// Names for rows, which are numerous.
    pub short: Vec<String>,
}

pub(super) fn sections(report: &GradingReport, labels: &Labels) -> Vec<Section> {
    let sections = [
        Some(tables::rates(report, &labels.long)),
        Some(tables::agreement(report, labels)),
        Some(tables::classes(report, &labels.long)),
        Some(tables::coverage(report, &labels.long)),
        Some(tables::flows(report, &labels.long)),
        Some(tables::repositories(report, &labels.long)),
        Some(tables::lengths(report, &labels.long)),
        tables::comparison(report, labels),
        Some(tables::time(report, labels)),
        tables::infrastructure(report, &labels.short),
        remarks(&report.notes),
    ];
    sections.into_iter().flatten().collect()
}

fn remarks(remarks: &[String]) -> Option<Section> {
    let mut table = Table::new("Anomalies in the results and predictions").words("Remark");
    for remark in remarks {
        table.row([remark.as_str().into()]);
    }
    (!remarks.is_empty()).then(|| Section::new("remarks", "Remarks", [table]))
}

/// Returns the facts about the run, by name.
pub(super) fn facts(run: &RunMetadata) -> Vec<(String, String)> {
    let some = [
        ("Dataset", run.dataset.clone()),
        ("Instances", run.instances.map(|n| n.to_string())),
        ("Dataset SHA-256", run.dataset_sha256.clone()),
        ("Grader", run.grader.clone()),
        ("Started", run.started.clone()),
        ("Wall time", run.seconds.map(seconds)),
        ("Workers", run.workers.map(|n| n.to_string())),
        ("Sandbox", run.sandbox.clone()),
    ];
    some.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
