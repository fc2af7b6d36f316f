//! Estimates what is left of a comparison and what it may cost, without starting anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::Serialize;
use testwright_evals::Dataset;

use super::run_record::stored_runs;
use super::{Plan, RunSpec, RunStatus, SPENDING};
use testwright_agent::approaches::{ModelKind, Variant};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::price::Prices;
use testwright_models::{ModelName, spending_limit};

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
            if matches!(approach.model(), ModelKind::Rules(_)) {
                continue;
            }
            let at_most = max_run_dollars(plan, settings, &ModelName::parse(&cell.system.model)?);
            likely = likely.zip(mean(cell)).map(|(sum, one)| sum + one);
            most = most.zip(at_most).map(|(sum, one)| sum + one);
        }
        let path = folder.join(SPENDING);
        let spent = spending_limit::spent(&path)
            .map_err(|error| Error::io(format!("read {}", path.display()), &error))?;
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
    let prices = Prices::from(&settings.prices);
    let price = prices.price_of(model)?;
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use testwright_config::settings::Price;

    use super::*;
    use crate::compare::System;

    fn dataset() -> Dataset {
        let instance = |number: u32| {
            let value = json!({
                "instance_id": format!("example__a-{number}"), "repo": "example/a",
                "base_commit": "abcdef", "problem_statement": "It fails.",
            });
            serde_json::from_value(value).unwrap()
        };
        Dataset {
            instances: vec![instance(1), instance(2)],
            ..Dataset::default()
        }
    }

    #[test]
    fn estimate_uses_finished_runs_and_limits() {
        let mut settings = Settings::default();
        settings.run.max_tokens = Some(1_000_000);
        let price: Price = serde_json::from_value(json!({"prompt": 1, "completion": 4})).unwrap();
        settings.prices.insert("m".to_owned(), price);
        let variants = ["otter", "snippet"].map(|name| Variant::parse(name).unwrap());
        let systems = System::all(&variants, &[ModelName::parse("m").unwrap()]).unwrap();
        let plan = Plan::new(&dataset(), systems, 1, &settings);
        let folder = tempfile::tempdir().unwrap();
        let estimate = |max_dollars| {
            Estimate::new(&plan, folder.path(), &dataset(), &settings, max_dollars).unwrap()
        };
        let before = estimate(None);
        assert_eq!((before.runs, before.runs_left), (4, 4));
        assert_eq!(before.max_environments, 1);
        assert_eq!(
            (before.likely_dollars, before.max_dollars),
            (None, Some(8.0))
        );
        let run = json!({
            "instance_id": "example__a-1", "approach": "otter", "model": "m", "sample": 1,
            "status": "nothing_submitted", "outcome": "no test", "model_calls": 1, "failed_calls": 0,
            "malformed_calls": 0, "tool_calls": 0, "prompt_tokens": 1, "cached_tokens": 0,
            "completion_tokens": 1, "dollars": 0.25, "model_seconds": 1.0, "tool_seconds": 0.0, "stages": {},
        });
        std::fs::write(folder.path().join("runs.jsonl"), format!("{run}\n")).unwrap();
        let after = estimate(Some(3.0));
        assert_eq!((after.runs, after.runs_left), (4, 3));
        assert_eq!(
            (after.likely_dollars, after.max_dollars),
            (Some(0.25), Some(3.0))
        );
    }

    #[test]
    fn estimate_covers_programs_and_run_limits() {
        let mut settings = Settings::default();
        settings.run.max_dollars = Some(0.5);
        let price: Price = serde_json::from_value(json!({"prompt": 1, "completion": 4})).unwrap();
        settings.prices.insert("m".to_owned(), price);
        let program = Variant::parse_with_commands("command:python my_agent.py").unwrap();
        let systems = System::all(&[program], &[ModelName::parse("m").unwrap()]).unwrap();
        let plan = Plan::new(&dataset(), systems, 1, &settings);
        let folder = tempfile::tempdir().unwrap();
        let estimate = Estimate::new(&plan, folder.path(), &dataset(), &settings, None).unwrap();
        assert_eq!((estimate.runs_left, estimate.max_dollars), (2, Some(1.0)));
    }
}
