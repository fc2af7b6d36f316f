//! The report on a comparison: `report.json`, `.md`, `.html` and two tables as CSV, made from the plan, the runs and the
//! grader's results alone. The same folder gives the same report, byte for byte.

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

use super::{Plan, replace};
use testwright_config::error::{Error, Result};

pub use confidence::ConfidencePoint;
pub use data::{Data, Judgement};
pub use overlap::{Overlap, OverlapGroup};
pub use pairs::{Ablation, Discordant, Pair};
pub use score::Score;
pub use summary::{CostSummary, Group, SystemSummary};

/// `report.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of testwright.
    pub testwright: String,
    pub plan: Plan,
    /// In the order of the plan.
    pub systems: Vec<SystemSummary>,
    /// Every two systems that are no upper bounds, on their first samples, by strict F→P: of those that are given the issue
    /// alone, and of those that are given more.
    pub pairs: Vec<Pair>,
    /// Each system with options against the same without them.
    pub ablations: Vec<Ablation>,
    pub overlap: Overlap,
    /// Spent on all calls, those that failed included; `None` where nothing had a price.
    #[serde(default)]
    pub dollars: Option<f64>,
    /// Runs and verdicts that there are none of, by reason: they count against nobody.
    pub not_judged: Vec<(String, u64)>,
}

impl Report {
    pub fn of(data: &Data) -> Self {
        let pairs = pairs::pairs(data);
        Report {
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

    /// A line for each system, for a terminal.
    pub fn table(&self) -> String {
        terminal::table(self)
    }
}

/// Makes the report of a folder.
pub fn write(folder: &Path) -> Result<Report> {
    let data = Data::read(folder)?;
    let report = Report::of(&data);
    let sections = sections::sections(&report);
    let facts = sections::facts(&report);
    let markdown = document::markdown(TITLE, &facts, &sections, "report.json");
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        let done = replace(&path, bytes);
        done.map_err(|error| Error::io(format!("write {}", path.display()), &error))
    };
    let failed =
        |error: &dyn std::error::Error| Error::infrastructure("make the report").cause(error);
    let mut json = serde_json::to_vec_pretty(&report).map_err(|e| failed(&e))?;
    json.push(b'\n');
    put("report.json", &json)?;
    put("report.md", markdown.as_bytes())?;
    put(
        "report.csv",
        &csv::systems(&report).map_err(|e| failed(&e))?,
    )?;
    put("runs.csv", &csv::runs(&data).map_err(|e| failed(&e))?)?;
    let page = page::page(&report, &data, &facts, sections).map_err(|e| failed(&e))?;
    put("report.html", page.as_bytes())?;
    Ok(report)
}

const TITLE: &str = "Comparison of approaches";
