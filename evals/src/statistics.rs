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
mod tests;
