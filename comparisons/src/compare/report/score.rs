//! A rate over instances, of one sample each or of several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::statistics::{Mean, Rate, wilson};

use super::data::{SystemRuns, Verdict};

/// With one sample an instance, the interval is Wilson's; with several, it is a bootstrap over instances, since samples of
/// one instance depend on each other. Where it holds in all samples or in none, there is nothing to resample, and the interval
/// is Wilson's over instances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    pub value: Option<f64>,
    /// 95 %.
    pub interval: Option<[f64; 2]>,
    pub instances: u64,
    /// All samples of them.
    pub runs: u64,
}

impl Score {
    pub fn of(system: &SystemRuns, holds: impl Fn(&Verdict) -> bool) -> Self {
        let by_instance: Vec<(usize, usize)> = system
            .verdicts()
            .map(|(_, samples)| (samples.iter().filter(|v| holds(v)).count(), samples.len()))
            .collect();
        Score::of_counts(&by_instance)
    }

    /// Of each instance: in how many samples it holds, of how many.
    fn of_counts(by_instance: &[(usize, usize)]) -> Self {
        let runs = by_instance.iter().map(|(_, of)| *of as u64).sum();
        let instances = by_instance.len() as u64;
        if by_instance.iter().all(|(_, of)| *of == 1) {
            let holding = by_instance.iter().filter(|(held, _)| *held == 1).count();
            return Score::of_rate(&Rate::of(holding, by_instance.len()));
        }
        let shares: Vec<f64> = by_instance
            .iter()
            .map(|(held, of)| *held as f64 / *of as f64)
            .collect();
        let mean = Mean::of(&shares);
        let always = by_instance.iter().all(|(held, of)| held == of);
        let never = by_instance.iter().all(|(held, _)| *held == 0);
        Score {
            value: mean.mean,
            interval: match (always, never) {
                (true, _) => wilson(shares.len(), shares.len()),
                (_, true) => wilson(0, shares.len()),
                _ => mean.interval,
            },
            instances,
            runs,
        }
    }

    pub fn of_rate(rate: &Rate) -> Self {
        Score {
            value: rate.rate,
            interval: rate.interval,
            instances: rate.denominator,
            runs: rate.denominator,
        }
    }
}

/// The probability that one of `k` samples holds, without bias (Chen et al., arXiv 2107.03374, §2.1): the mean over the
/// instances that have as many. `None` where none has.
pub fn pass_at(system: &SystemRuns, k: usize) -> Option<f64> {
    let of_instance = |(_, samples): (usize, Vec<&Verdict>)| {
        let (n, held) = (
            samples.len(),
            samples.iter().filter(|v| v.fail_to_pass).count(),
        );
        (n >= k).then(|| 1.0 - misses(n, held, k))
    };
    let all: Vec<f64> = system.verdicts().filter_map(of_instance).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// C(n − held, k) / C(n, k).
fn misses(n: usize, held: usize, k: usize) -> f64 {
    if n - held < k {
        return 0.0;
    }
    let term = |i: usize| 1.0 - k as f64 / i as f64;
    (n - held + 1..=n).map(term).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pass_at_k_as_by_counting() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        // Of 5 samples 2 hold: of the 10 pairs, 3 miss.
        assert!(close(misses(5, 2, 2), 0.3));
        assert!(close(misses(5, 2, 1), 0.6));
        assert!(close(misses(5, 0, 3), 1.0));
        assert!(close(misses(5, 3, 3), 0.0));
    }

    #[test]
    fn several_samples_of_an_instance_are_not_several_instances() {
        let one = Score::of_counts(&[(1, 1), (0, 1), (1, 1), (0, 1)]);
        let copies = Score::of_counts(&[(5, 5), (0, 5), (5, 5), (0, 5)]);
        assert_eq!(one.value, copies.value);
        assert_eq!((copies.instances, copies.runs), (4, 20));
        let width = |score: Score| score.interval.map(|[low, high]| high - low);
        assert!(width(copies) > Some(0.5), "{copies:?}");
        let none = Score::of_counts(&[(0, 5); 12]);
        let is_wilson = |[low, high]: [f64; 2]| low < 1e-9 && (0.2..0.3).contains(&high);
        assert!(none.interval.is_some_and(is_wilson), "{none:?}");
    }
}
