//! Paired comparison of two approaches on the same instances: which instances only one of them solves, and which
//! difference the number of instances can show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Z;

/// One-sided 80 % quantile of the normal distribution.
const Z_POWER: f64 = 0.841_621_233_572_914_2;

/// Share of instances on which two published runs of one system with the same score disagreed: 70 of 433.
pub const DISAGREEMENT_OF_RERUNS: f64 = 70.0 / 433.0;

/// Paired outcomes of two approaches with the exact test of McNemar (1947).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedComparison {
    /// Number of instances that both solve.
    pub both: u64,
    /// Number of instances that only the first solves.
    pub only_first: u64,
    /// Number of instances that only the second solves.
    pub only_second: u64,
    /// Number of instances that neither solves.
    pub neither: u64,
    /// Rate of the first minus that of the second; `None` without instances.
    pub difference: Option<f64>,
    /// Exact two-sided p-value. The null hypothesis is that a discordant instance is equally likely to go either way.
    pub p_value: f64,
    /// Minimum difference that is detectable with 80 % power at the observed share of discordant instances.
    pub smallest_difference: Option<f64>,
}

impl PairedComparison {
    /// Compares two approaches, given for each instance whether the first and the second solve it.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (bool, bool)>) -> PairedComparison {
        let mut counts = [0u64; 4];
        for (first, second) in pairs {
            counts[2 * usize::from(!first) + usize::from(!second)] += 1;
        }
        let [both, only_first, only_second, neither] = counts;
        let instances: u64 = counts.iter().sum();
        let share = |count: f64| (instances > 0).then(|| count / instances as f64);
        PairedComparison {
            both,
            only_first,
            only_second,
            neither,
            difference: share(only_first as f64 - only_second as f64),
            p_value: mcnemar(only_first, only_second),
            smallest_difference: share((only_first + only_second) as f64)
                .and_then(|discordant| minimum_detectable_difference(instances, discordant)),
        }
    }
}

/// Returns the exact two-sided p-value of McNemar's test from the discordant counts.
pub fn mcnemar(first: u64, second: u64) -> f64 {
    let n = first + second;
    // Sum the binomial terms by their logarithms, because 2^-n underflows for large n.
    let mut log = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for k in 0..=first.min(second) {
        tail += log.exp();
        log += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    (2.0 * tail).min(1.0)
}

/// Returns the minimum difference of two rates that a paired comparison detects with 80 % power at the 5 % level
/// (Connor 1987). `discordant` is the share of the instances on which the two disagree. Returns `None` if no difference
/// could be shown, not even if all disagreements went one way.
pub fn minimum_detectable_difference(instances: u64, discordant: f64) -> Option<f64> {
    let needed = |difference: f64| {
        let spread = (discordant - difference * difference).max(0.0);
        ((Z * discordant.sqrt() + Z_POWER * spread.sqrt()) / difference).powi(2)
    };
    let available = instances as f64;
    if discordant <= 0.0 || needed(discordant) > available {
        return None;
    }
    let (mut low, mut high) = (0.0, discordant);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if needed(middle) > available {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests;
