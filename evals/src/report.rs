//! Reports on graded predictions: `report.json`, `report.md`, `report.html`, `results.csv` and LaTeX tables in the
//! results folder. They are made from `results.jsonl` and, if it exists, `run.json`. The same results give the same reports, byte for byte.
//!
//! This module runs and grades nothing, and does not question verdicts.

mod compare;
mod details;
mod metric;
mod page;
mod prediction_sets;
mod results_table;
mod run_metadata;
#[cfg(test)]
#[path = "report/tests/sample.rs"]
pub(crate) mod sample;
mod sections;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use compare::{Comparison, Overlap, PairOfSets};
pub use details::{
    ClassRow, Details, Flow, Group, Histogram, InfrastructureFailure, Slow, Time, VerdictAgreement,
    VerdictDifference,
};
pub use metric::Metric;
pub use run_metadata::RunMetadata;
pub use summary::{Power, Summary, counted_delta};

use crate::dataset::{Patterns, SelectionError};
use crate::document::Section;
use crate::document::html::RenderError;
use crate::folder::Versioned;
use crate::{document, folder};
use sections::{Labels, facts, sections};

use crate::predictions::Warning;
use crate::result::InstanceResult;
use crate::result::results_file::{self, ResultsFile};
use prediction_sets::PredictionSet;

/// A report that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file of the results folder could not be read.
    #[error("read {path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of the results folder is not valid JSON.
    #[error("read {path}: {source}")]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A file of the report could not be written.
    #[error("write {path}: {source}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The page could not be rendered.
    #[error("render the report: {0}")]
    Render(#[from] RenderError),
    /// The selection of instances is invalid.
    #[error("select instances: {0}")]
    Selection(#[from] SelectionError),
    /// The figures could not be serialized.
    #[error("serialize the report: {0}")]
    Serialize(#[source] serde_json::Error),
}

/// Content of `report.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradingReport {
    /// Facts about the run of the harness.
    pub run: RunMetadata,
    /// Anomalies in results and predictions.
    pub notes: Vec<String>,
    /// Headline figures by prediction set.
    pub summary: BTreeMap<String, Summary>,
    /// Detailed figures by prediction set.
    pub details: BTreeMap<String, Details>,
    /// Comparison of two or more prediction sets.
    pub comparison: Option<Comparison>,
}

/// Writes the reports of a results folder, and the table of its results.
///
/// # Errors
///
/// Fails if the results cannot be read, or a report cannot be rendered or written.
pub fn write(folder: &Path, run: &RunMetadata) -> Result<GradingReport, ReportError> {
    let (results, remarks) = results(folder)?;
    let sets = prediction_sets::group(results, run);
    let failed = |error: csv::Error| write_failed(folder, results_table::FILE)(error.into());
    let table = results_table::results_table(&sets).map_err(failed)?;
    put(folder, results_table::FILE, &table)?;
    write_reports(folder, "report", sets, remarks, run)
}

/// Returns the report of a results folder without writing it. If there are patterns (ids or globs), only the instances
/// that they match are in it.
///
/// # Errors
///
/// Fails if the results cannot be read, or a pattern matches none of their instances.
pub fn read(folder: &Path, patterns: Option<&str>) -> Result<GradingReport, ReportError> {
    let mut run = RunMetadata::read(folder)?;
    let (mut results, remarks) = results(folder)?;
    if let Some(patterns) = patterns {
        let ids: Vec<&str> = results.iter().map(|g| g.instance_id.as_str()).collect();
        let patterns = Patterns::parse(patterns, &ids)?;
        results.retain(|graded| patterns.matches(&graded.instance_id));
        run.predictions
            .retain(|warning| patterns.matches(&warning.instance_id));
        let mut ids: BTreeSet<&str> = results.iter().map(|g| g.instance_id.as_str()).collect();
        // Instances that are not graded yet count too: the report must show that its sets are partial.
        let selected = run.instance_ids.iter().filter(|id| patterns.matches(id));
        ids.extend(selected.map(String::as_str));
        run.instances = Some(ids.len() as u64);
    }
    let sets = prediction_sets::group(results, &run);
    Ok(GradingReport::from_sets(&sets, remarks, &run))
}

/// Reads the results of a folder, and returns them with remarks on anomalies.
fn results(folder: &Path) -> Result<(Vec<InstanceResult>, Vec<String>), ReportError> {
    let path = folder.join(results_file::FILE);
    let read = ResultsFile::open(&path);
    let ResultsFile { by_name, remarks } =
        read.map_err(|source| ReportError::Read { path, source })?;
    let results = by_name.into_values().map(|line| line.graded).collect();
    Ok((results, remarks))
}

/// Compares the prediction sets of several folders and writes `comparison.json`, `.md` and `.html` to the folder
/// `into`. Sets with the same name are distinguished by their folders.
///
/// # Errors
///
/// Fails if the results or metadata of a folder cannot be read, or a report cannot be rendered or written.
pub fn write_comparison(folders: &[&Path], into: &Path) -> Result<GradingReport, ReportError> {
    let mut all: Vec<(&Path, PredictionSet)> = Vec::new();
    let mut remarks = Vec::new();
    for folder in folders {
        let (results, odd) = results(folder)?;
        let run = RunMetadata::read(folder)?;
        let place = folder.display();
        let odd = odd.into_iter().chain(run.notes.iter().cloned());
        let odd = odd.chain(group_warnings(&run.predictions));
        remarks.extend(odd.map(|r| format!("{place}: {r}")));
        let folder_sets = prediction_sets::group(results, &run).into_iter();
        all.extend(folder_sets.map(|set| (*folder, set)));
    }
    let names: Vec<String> = all.iter().map(|(_, set)| set.prediction.clone()).collect();
    let sets = all
        .into_iter()
        .map(|(folder, mut set)| {
            if names.iter().filter(|n| **n == set.prediction).count() > 1 {
                set.prediction = format!("{} ({})", set.prediction, folder.display());
            }
            page::move_logs(&mut set.all, folder, into);
            set
        })
        .collect();
    write_reports(into, "comparison", sets, remarks, &RunMetadata::default())
}

fn write_reports(
    folder: &Path,
    name: &str,
    mut sets: Vec<PredictionSet>,
    remarks: Vec<String>,
    run: &RunMetadata,
) -> Result<GradingReport, ReportError> {
    // Sort by name as in the report, because the position determines a set's letter.
    sets.sort_by(|a, b| a.prediction.cmp(&b.prediction));
    let report = GradingReport::from_sets(&sets, remarks, run);
    let html = page::page(&report, &sets)?;
    let sections = text_sections(&report);
    let markdown = document::markdown("Evaluation", &facts(&report.run), &sections, "report.json");
    put_json(folder, &format!("{name}.json"), &report)?;
    put(folder, &format!("{name}.md"), markdown.as_bytes())?;
    put(folder, &format!("{name}.html"), html.as_bytes())?;
    let tables = match name {
        "report" => "tables".to_owned(),
        name => format!("{name}-tables"),
    };
    document::write_tables(folder, &tables, &sections).map_err(write_failed(folder, &tables))?;
    Ok(report)
}

impl GradingReport {
    fn from_sets(
        sets: &[PredictionSet],
        mut remarks: Vec<String>,
        run: &RunMetadata,
    ) -> GradingReport {
        remarks.extend(run.notes.iter().cloned());
        remarks.extend(group_warnings(&run.predictions));
        let by_name = |set: &PredictionSet| set.prediction.clone();
        GradingReport {
            run: RunMetadata {
                instance_ids: Vec::new(),
                ..run.clone()
            },
            notes: remarks,
            summary: sets
                .iter()
                .map(|s| (by_name(s), summary::summary(s)))
                .collect(),
            details: sets
                .iter()
                .map(|s| (by_name(s), details::details(s)))
                .collect(),
            comparison: compare::compare(sets),
        }
    }
}

/// Maximum instances that a line of warnings names. The rest are counted, and listed in `run` of `report.json`.
const NAMED: usize = 5;

/// Returns one line per model and kind of warning.
fn group_warnings(warnings: &[Warning]) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for warning in warnings {
        groups
            .entry((&warning.model_name_or_path, warning.kind.text()))
            .or_default()
            .push(&warning.instance_id);
    }
    let line = |((model, what), instances): ((&str, &str), Vec<&str>)| {
        let examples: Vec<&str> = instances.iter().take(NAMED).copied().collect();
        let more = match instances.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{model}: {what}: {}{more}", examples.join(", "))
    };
    groups.into_iter().map(line).collect()
}

fn put_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), ReportError> {
    let json = folder::pretty_json(&Versioned::new(value)).map_err(ReportError::Serialize)?;
    put(folder, name, &json)
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
    folder::write_file(&folder.join(name), bytes).map_err(write_failed(folder, name))
}

fn write_failed(folder: &Path, name: &str) -> impl Fn(std::io::Error) -> ReportError {
    let path = folder.join(name);
    move |source| ReportError::Write {
        path: path.clone(),
        source,
    }
}

/// Returns the sections with the full names of the prediction sets, for Markdown and LaTeX.
fn text_sections(report: &GradingReport) -> Vec<Section> {
    let names: Vec<String> = report.summary.keys().cloned().collect();
    let labels = Labels {
        long: names.clone(),
        short: names,
    };
    sections(report, &labels)
}
