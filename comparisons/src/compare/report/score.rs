//! Computes rates over instances with one or several samples.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::statistics::{Mean, Rate, bootstrap_of, wilson};

use super::data::{SystemRuns, Verdict};

/// A rate with its interval. With one sample per instance, the interval is Wilson's. With several samples, it is a
/// bootstrap over instances, since samples of one instance are not independent. If all samples succeed or none does,
/// resampling shows no variation, and the interval is Wilson's over instances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// The rate, 0 to 1; `None` without verdicts.
    pub value: Option<f64>,
    /// The 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Number of instances with a verdict.
    pub instances: u64,
    /// Number of samples of all instances.
    pub runs: u64,
}

impl Score {
    /// Computes the share of a system's verdicts for which `holds` is true.
    pub fn from_system(system: &SystemRuns, holds: impl Fn(&Verdict) -> bool) -> Self {
        let by_instance: Vec<(usize, usize)> = system
            .counted_verdicts()
            .map(|samples| (samples.iter().filter(|v| holds(v)).count(), samples.len()))
            .collect();
        Score::of_counts(&by_instance)
    }

    /// Computes a score from the number of successful samples and the number of samples of each instance.
    fn of_counts(by_instance: &[(usize, usize)]) -> Self {
        let runs = by_instance.iter().map(|(_, of)| *of as u64).sum();
        let instances = by_instance.len() as u64;
        if by_instance.iter().all(|(_, of)| *of == 1) {
            let holding = by_instance.iter().filter(|(held, _)| *held == 1).count();
            let rate = Rate::new(holding, by_instance.len());
            return Score {
                value: rate.rate,
                interval: rate.interval,
                instances,
                runs,
            };
        }
        let shares: Vec<f64> = by_instance
            .iter()
            .map(|(held, of)| *held as f64 / *of as f64)
            .collect();
        let mean = Mean::from_values(&shares);
        Score {
            value: mean.mean,
            interval: interval_over_instances(by_instance, mean.interval),
            instances,
            runs,
        }
    }
}

/// Returns the interval of a share. `by_instance` has the number of successful samples and the number of samples of each
/// instance. The bootstrap counts unless it shows no variation.
fn interval_over_instances(
    by_instance: &[(usize, usize)],
    bootstrap: Option<[f64; 2]>,
) -> Option<[f64; 2]> {
    let always = by_instance.iter().all(|(held, all)| held == all);
    let never = by_instance.iter().all(|(held, _)| *held == 0);
    match (always, never) {
        (true, _) => wilson(by_instance.len(), by_instance.len()),
        (_, true) => wilson(0, by_instance.len()),
        _ => bootstrap,
    }
}

/// Returns the share of successful runs. Each run comes with its instance. The interval is computed as for a [`Score`].
pub(super) fn rate_of_runs(runs: impl Iterator<Item = (usize, bool)>) -> Rate {
    let mut by_instance: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (instance, holds) in runs {
        let (held, all) = by_instance.entry(instance).or_default();
        *held += usize::from(holds);
        *all += 1;
    }
    let by_instance: Vec<(usize, usize)> = by_instance.into_values().collect();
    let held: usize = by_instance.iter().map(|(held, _)| held).sum();
    let all: usize = by_instance.iter().map(|(_, all)| all).sum();
    let mut rate = Rate::new(held, all);
    if all > by_instance.len() {
        let bootstrap = bootstrap_of(by_instance.len(), |drawn| {
            let held: usize = drawn.iter().map(|at| by_instance[*at].0).sum();
            let all: usize = drawn.iter().map(|at| by_instance[*at].1).sum();
            held as f64 / all as f64
        });
        rate.interval = interval_over_instances(&by_instance, bootstrap);
    }
    rate
}

/// Returns the mean of a value over instances. The value of an instance is the mean over its samples. Instances without
/// a value are left out.
pub(super) fn mean_of(system: &SystemRuns, value: fn(&Verdict) -> Option<f64>) -> Mean {
    let of_instance = |samples: Vec<&Verdict>| {
        let values: Vec<f64> = samples.into_iter().filter_map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let means: Vec<f64> = system.counted_verdicts().filter_map(of_instance).collect();
    Mean::from_values(&means)
}

/// Returns the unbiased estimate of the probability that one of `k` samples succeeds (Chen et al., arXiv 2107.03374,
/// §2.1). It is the mean over the instances with at least `k` samples; `None` if no instance has that many.
pub(super) fn pass_at(system: &SystemRuns, k: usize) -> Option<f64> {
    let of_instance = |(_, samples): (usize, Vec<&Verdict>)| {
        let held = samples.iter().filter(|v| v.fail_to_pass).count();
        (samples.len() >= k).then(|| 1.0 - misses(samples.len(), held, k))
    };
    let all: Vec<f64> = system.verdicts().filter_map(of_instance).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Returns C(n − held, k) / C(n, k).
fn misses(n: usize, held: usize, k: usize) -> f64 {
    if n - held < k {
        return 0.0;
    }
    let term = |i: usize| 1.0 - k as f64 / i as f64;
    (n - held + 1..=n).map(term).product()
}

#[cfg(test)]
mod tests;
