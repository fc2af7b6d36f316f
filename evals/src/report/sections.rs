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
    let mut sections = vec![
        tables::rates(report, &labels.long),
        tables::agreement(report, labels),
        tables::classes(report, &labels.long),
        tables::coverage(report, &labels.long),
        tables::flows(report, &labels.long),
        tables::repositories(report, &labels.long),
        tables::lengths(report, &labels.long),
    ];
    sections.extend(tables::comparison(report, labels));
    sections.push(tables::time(report, labels));
    sections.extend(tables::infrastructure(report, &labels.short));
    if !report.notes.is_empty() {
        sections.push(Section::new("remarks", "Remarks", [remarks(&report.notes)]));
    }
    sections
}

fn remarks(remarks: &[String]) -> Table {
    let mut table = Table::new("Anomalies in the results and predictions").words("Remark");
    for remark in remarks {
        table.row([remark.as_str().into()]);
    }
    table
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
