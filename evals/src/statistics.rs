//! Statistics of rates and means, with intervals suitable for a few hundred instances.

mod paired;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::split_mix::SplitMix;

pub use paired::{
    DISAGREEMENT_OF_RERUNS, PairedComparison, mcnemar, minimum_detectable_difference,
};

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A share of instances, with its denominator and 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Number of instances that count.
    pub numerator: u64,
    /// Number of all instances.
    pub denominator: u64,
    /// The rate; `None` if the denominator is 0.
    pub rate: Option<f64>,
    /// The 95 % interval: Wilson's score interval (Wilson 1927), or a bootstrap over instances with several samples.
    pub interval: Option<[f64; 2]>,
}

impl Rate {
    /// Computes a rate with its interval.
    pub fn new(numerator: usize, denominator: usize) -> Rate {
        Rate {
            numerator: numerator as u64,
            denominator: denominator as u64,
            rate: (denominator > 0).then(|| numerator as f64 / denominator as f64),
            interval: wilson(numerator, denominator),
        }
    }
}

/// Returns Wilson's score interval of a share, 95 %.
pub fn wilson(numerator: usize, denominator: usize) -> Option<[f64; 2]> {
    if denominator == 0 {
        return None;
    }
    let (k, n) = (numerator as f64, denominator as f64);
    let share = k / n;
    let scale = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    Some([(centre - half).max(0.0), (centre + half).min(1.0)])
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// The sum of the values.
    pub numerator: f64,
    /// Number of values.
    pub denominator: u64,
    /// The mean; `None` without values.
    pub mean: Option<f64>,
    /// Percentile bootstrap interval, 95 %. It is seeded: the same values give the same interval. `None` if all values
    /// are equal, because resampling then shows no variation.
    pub interval: Option<[f64; 2]>,
}

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2_000;

impl Mean {
    /// Computes the mean of values with its interval.
    pub fn from_values(values: &[f64]) -> Mean {
        let sum: f64 = values.iter().sum();
        Mean {
            numerator: sum,
            denominator: values.len() as u64,
            mean: (!values.is_empty()).then(|| sum / values.len() as f64),
            interval: bootstrap(values),
        }
    }
}

fn bootstrap(values: &[f64]) -> Option<[f64; 2]> {
    bootstrap_of(values.len(), |drawn| {
        let sum: f64 = drawn.iter().map(|at| values[*at]).sum();
        sum / values.len() as f64
    })
}

/// Returns the percentile bootstrap interval, 95 %, of a statistic over `cases` cases. The statistic receives the
/// indices of the drawn cases. The draws are seeded. Returns `None` if all draws give the same value.
pub fn bootstrap_of(cases: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<[f64; 2]> {
    if cases == 0 {
        return None;
    }
    let mut random = SplitMix(0x7465_7374_7772_6967);
    let mut drawn = vec![0; cases];
    let mut values: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| random.below(cases));
            statistic(&drawn)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[(share * (RESAMPLES - 1) as f64).round() as usize];
    (values.first() != values.last()).then(|| [at(0.025), at(0.975)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    #[test]
    fn wilson_matches_published_values() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (k, n, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let [a, b] = wilson(k, n).unwrap();
            assert!(close(a, low) && close(b, high), "{k}/{n}: {a} {b}");
        }
        assert_eq!(wilson(0, 0), None);
        assert_eq!(Rate::new(0, 0).rate, None);
    }

    #[test]
    fn bootstrap_contains_mean_and_is_deterministic() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
        let mean = Mean::from_values(&values);
        let [low, high] = mean.interval.unwrap();
        let true_half = 1.96 * (1.0f64 / 12.0 / 100.0).sqrt();
        assert!((high - low - 2.0 * true_half).abs() < 0.01, "{low} {high}");
        assert!(low < mean.mean.unwrap() && mean.mean.unwrap() < high);
        assert_eq!(mean, Mean::from_values(&values));
        assert_eq!(Mean::from_values(&[]).interval, None);
        assert_eq!(Mean::from_values(&[0.3; 7]).interval, None);
    }
}
