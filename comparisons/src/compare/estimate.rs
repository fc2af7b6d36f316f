//! Estimates what is left of a comparison and what it may cost, without starting anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::Serialize;
use testwright_evals::Dataset;

use super::run_record::stored_runs;
use super::{Plan, RunSpec, RunStatus};
use crate::model_work::spent_dollars;
use testwright_agent::approaches::{ModelKind, Variant};
use testwright_config::error::Result;
use testwright_config::settings::Settings;
use testwright_models::ModelName;
use testwright_models::price::price_of;

/// The rest of a comparison: its runs, environments and cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of runs of the whole comparison.
    pub runs: u64,
    /// Number of runs that have no result yet.
    pub runs_left: u64,
    /// Maximum number of environments to build, one for each commit. Cached environments are not built again.
    pub max_environments: u64,
    /// Likely cost of the runs that are left, in US dollars: the mean of the finished runs of each system. `None` if a
    /// system has no finished run with a price.
    pub likely_dollars: Option<f64>,
    /// Maximum cost of the runs that are left, in US dollars, from the limits in dollars (of the comparison and of each
    /// run) and in tokens. `None` without a limit, or without a price.
    pub max_dollars: Option<f64>,
}

impl Estimate {
    /// Estimates the rest of the comparison in a folder, which may be missing.
    ///
    /// # Errors
    ///
    /// Fails if the runs or the ledger of the folder cannot be read, or an approach is invalid.
    pub fn new(
        plan: &Plan,
        folder: &Path,
        dataset: &Dataset,
        settings: &Settings,
        max_dollars: Option<f64>,
    ) -> Result<Self> {
        let stored = stored_runs(folder)?;
        let cells = plan.cells(dataset.instances.iter().map(|i| i.instance_id.as_str()));
        let is_finished = |cell: &&RunSpec| {
            let run = stored.get(&cell.key());
            run.is_some_and(|run| run.status != RunStatus::Infrastructure)
        };
        let (finished, left): (Vec<&RunSpec>, Vec<&RunSpec>) = cells.iter().partition(is_finished);
        let mut paid: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for cell in finished {
            let dollars = stored.get(&cell.key()).and_then(|run| run.cost.dollars);
            paid.entry(cell.system.name()).or_default().push(dollars);
        }
        let mean = |cell: &RunSpec| {
            let paid = paid.get(&cell.system.name())?;
            let sum: Option<f64> = paid.iter().copied().sum();
            Some(sum? / paid.len() as f64)
        };
        let (mut likely, mut most) = (Some(0.0), Some(0.0));
        for cell in &left {
            // Nothing is started here, so the approach may be a user's program.
            let approach = Variant::parse_with_commands(&cell.system.approach)?.approach;
            if matches!(approach.model, ModelKind::Rules(_)) {
                continue;
            }
            let at_most = max_run_dollars(plan, settings, &ModelName::parse(&cell.system.model)?);
            likely = likely.zip(mean(cell)).map(|(sum, one)| sum + one);
            most = most.zip(at_most).map(|(sum, one)| sum + one);
        }
        let spent = spent_dollars(folder)?;
        let budget = max_dollars.map(|limit| (limit - spent.unwrap_or_default()).max(0.0));
        let commits: BTreeSet<(&str, &str)> = left
            .iter()
            .filter_map(|cell| dataset.get(&cell.instance))
            .map(|instance| (instance.repo.as_str(), instance.base_commit.as_str()))
            .collect();
        Ok(Estimate {
            runs: cells.len() as u64,
            runs_left: left.len() as u64,
            max_environments: commits.len() as u64,
            likely_dollars: likely,
            max_dollars: most.into_iter().chain(budget).reduce(f64::min),
        })
    }
}

/// Returns the maximum cost of a run, from its limits in dollars and tokens; `None` without a limit or a price.
fn max_run_dollars(plan: &Plan, settings: &Settings, model: &ModelName) -> Option<f64> {
    let price = price_of(settings, model)?;
    let dearest = price.prompt.max(price.completion);
    let of_tokens = (plan.limits.tokens).map(|tokens| tokens as f64 * dearest / 1e6);
    let limits = of_tokens.into_iter().chain(settings.run.max_dollars);
    limits.reduce(f64::min)
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = |dollars: Option<f64>, otherwise: &str| match dollars {
            Some(dollars) => format!("${dollars:.2}"),
            None => otherwise.to_owned(),
        };
        let likely = dollars(
            self.likely_dollars,
            "unknown until each system has a finished run with a price",
        );
        let most = dollars(
            self.max_dollars,
            "no limit; set --max-dollars, or --max-tokens and prices",
        );
        writeln!(f, "runs left: {} of {}", self.runs_left, self.runs)?;
        writeln!(
            f,
            "environments to build: at most {}, fewer if some are cached",
            self.max_environments
        )?;
        writeln!(f, "likely cost: {likely}")?;
        writeln!(f, "maximum cost: {most}")
    }
}

#[cfg(test)]
mod tests;
