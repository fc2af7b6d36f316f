//! Pairwise comparison of systems on the same instances: paired tests, with Holm's correction for multiple comparisons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::statistics::PairedComparison;

use super::data::{Data, SystemRuns};

/// Comparison of two systems on the same instances, by strict F→P of first samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Name of the first system.
    pub first: String,
    /// Name of the second system.
    pub second: String,
    /// Number of instances with a verdict for both.
    pub instances: u64,
    /// Paired outcomes, with McNemar's test.
    #[serde(flatten)]
    pub paired: PairedComparison,
    /// McNemar's p-value after Holm's correction (1979) over all pairs of the report.
    pub p_value_holm: f64,
    /// Instances that only one of the systems solves.
    pub discordant: Vec<Discordant>,
}

/// An instance that only one of two systems solves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Discordant {
    /// Id of the instance.
    pub instance: String,
    /// Whether the first system solves it; otherwise the second does.
    pub first_solves: bool,
    /// Folder of the first system's run, relative to the report.
    pub first_run: String,
    /// Folder of the second system's run, relative to the report.
    pub second_run: String,
}

/// Difference between a system with options (the first) and the same system without them (the second).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ablation {
    /// Name of the system with options.
    pub system: String,
    /// Name of the same system without options.
    pub base: String,
    /// Number of instances with a verdict for both.
    pub instances: u64,
    /// Counts with the system as `first` and the base as `second`.
    #[serde(flatten)]
    pub paired: PairedComparison,
}

pub(super) fn pairs(data: &Data) -> Vec<Pair> {
    let systems: Vec<&SystemRuns> = data
        .systems
        .iter()
        .filter(|s| s.system.oracle_samples.is_none())
        .collect();
    let mut pairs = Vec::new();
    for (at, first) in systems.iter().enumerate() {
        // Systems with extra inputs have a different task; ablations show the effect of the inputs.
        let is_fair = |second: &&&SystemRuns| {
            first.system.extra_inputs.is_empty() == second.system.extra_inputs.is_empty()
        };
        for second in systems[at + 1..].iter().filter(is_fair) {
            pairs.push(pair(data, first, second));
        }
    }
    let values: Vec<f64> = pairs.iter().map(|pair| pair.paired.p_value).collect();
    for (pair, p) in pairs.iter_mut().zip(holm(&values)) {
        pair.p_value_holm = p;
    }
    pairs
}

fn pair(data: &Data, first: &SystemRuns, second: &SystemRuns) -> Pair {
    let both = both(data, first, second);
    let folder = |of: &SystemRuns, at: usize| {
        let run = of.runs[at].first().and_then(Option::as_ref);
        run.map(|run| run.folder.clone()).unwrap_or_default()
    };
    let discordant = both.iter().filter(|(_, a, b)| a != b);
    let discordant = discordant.map(|(at, by_first, _)| Discordant {
        instance: data.plan.instances[*at].id.clone(),
        first_solves: *by_first,
        first_run: folder(first, *at),
        second_run: folder(second, *at),
    });
    Pair {
        first: first.system.name(),
        second: second.system.name(),
        instances: both.len() as u64,
        paired: PairedComparison::from_pairs(both.iter().map(|(_, a, b)| (*a, *b))),
        p_value_holm: 1.0,
        discordant: discordant.collect(),
    }
}

/// Returns the instances with a verdict for both systems, with those verdicts.
fn both(data: &Data, first: &SystemRuns, second: &SystemRuns) -> Vec<(usize, bool, bool)> {
    let of = |at: usize| {
        let (a, b) = (first.first(at)?, second.first(at)?);
        Some((at, a.fail_to_pass, b.fail_to_pass))
    };
    (0..data.plan.instances.len()).filter_map(of).collect()
}

/// Returns adjusted p-values, in the order of the input.
pub(super) fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut adjusted = vec![1.0; values.len()];
    let mut largest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest
            .max(values[at] * (values.len() - rank) as f64)
            .min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

pub(super) fn ablations(data: &Data) -> Vec<Ablation> {
    let base_of = |of: &SystemRuns| {
        let (base, _) = of.system.approach.split_once(':')?;
        data.systems
            .iter()
            .find(|s| s.system.approach == base && s.system.model == of.system.model)
    };
    let ablation = |of: &SystemRuns| {
        let base = base_of(of)?;
        let both = both(data, of, base);
        Some(Ablation {
            system: of.system.name(),
            base: base.system.name(),
            instances: both.len() as u64,
            paired: PairedComparison::from_pairs(both.iter().map(|(_, a, b)| (*a, *b))),
        })
    };
    data.systems.iter().filter_map(ablation).collect()
}

#[cfg(test)]
mod tests;
