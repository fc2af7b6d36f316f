//! The report on a comparison: `report.json`, `.md`, `.html`, two CSV tables, and its tables and plots as files. It depends only on the plan, the runs
//! and the grader's results: the same folder gives the same report, byte for byte.

mod confidence;
mod csv;
mod data;
mod overlap;
mod page;
mod pairs;
mod plots;
mod score;
mod sections;
mod summary;
mod terminal;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::document;
use testwright_evals::folder::{Versioned, pretty_json};

use super::Plan;
use crate::record_file::write_file;
use testwright_config::error::{Error, Result};

pub use confidence::ConfidencePoint;
pub use data::{Data, Judgement};
pub use overlap::{Overlap, OverlapGroup};
pub use pairs::{Ablation, Discordant, Pair};
pub use score::Score;
pub use summary::{CostSummary, Group, SystemSummary};

/// Content of `report.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonReport {
    /// Version of testwright.
    pub testwright: String,
    /// The plan of the comparison, as in `comparison.json`.
    pub plan: Plan,
    /// Systems in the order of the plan.
    pub systems: Vec<SystemSummary>,
    /// Pairwise comparisons of systems by strict F→P of first samples. Upper bounds (systems with `oracle_samples`) are
    /// excluded. Systems without extra inputs are compared with each other, and so are systems with extra inputs.
    pub pairs: Vec<Pair>,
    /// Each system with options, compared with the same system without them.
    pub ablations: Vec<Ablation>,
    /// Instances that systems solve in common.
    pub overlap: Overlap,
    /// Total cost of all calls, including failed ones; `None` if no model had a price.
    #[serde(default)]
    pub dollars: Option<f64>,
    /// Number of missing runs and verdicts by reason; they do not count against any system.
    pub not_judged: Vec<(String, u64)>,
}

impl ComparisonReport {
    /// Computes the report from a plan and its graded runs.
    pub fn from_data(data: &Data) -> Self {
        let pairs = pairs::pairs(data);
        ComparisonReport {
            testwright: env!("CARGO_PKG_VERSION").to_owned(),
            plan: data.plan.clone(),
            systems: summary::summaries(data),
            ablations: pairs::ablations(data),
            pairs,
            overlap: overlap::overlap(data),
            dollars: data.dollars,
            not_judged: data.not_judged(),
        }
    }

    /// Returns a table for the terminal, with one line per system. It has as many columns as fit a width.
    pub fn table(&self, width: Option<usize>) -> String {
        terminal::table(self, width)
    }
}

/// Writes the report of a folder.
///
/// # Errors
///
/// Fails if the folder cannot be read, or a report cannot be rendered or written.
pub fn write(folder: &Path) -> Result<ComparisonReport> {
    let data = Data::read(folder)?;
    let report = ComparisonReport::from_data(&data);
    let sections = sections::sections(&report);
    let facts = sections::facts(&report);
    let markdown = document::markdown(TITLE, &facts, &sections, "report.json");
    let put = |name: &str, bytes: &[u8]| write_file(&folder.join(name), bytes);
    let failed =
        |error: &dyn std::error::Error| Error::infrastructure("render the report").cause(error);
    let json = pretty_json(&Versioned::new(&report)).map_err(|e| failed(&e))?;
    put("report.json", &json)?;
    put("report.md", markdown.as_bytes())?;
    put(
        "report.csv",
        &csv::systems(&report).map_err(|e| failed(&e))?,
    )?;
    put("runs.csv", &csv::runs(&data).map_err(|e| failed(&e))?)?;
    let not_written =
        |error: std::io::Error| Error::io(format!("write to {}", folder.display()), &error);
    document::write_tables(folder, "tables", &sections).map_err(not_written)?;
    for section in &sections {
        let plots = plots::plots(section.id, &report);
        document::write_plots(folder, section.id, &plots).map_err(not_written)?;
    }
    let page = page::page(&report, &data, &facts, sections).map_err(|e| failed(&e))?;
    put("report.html", page.as_bytes())?;
    Ok(report)
}

const TITLE: &str = "Comparison of approaches";
