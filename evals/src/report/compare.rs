//! Compares several prediction sets on the same instances: each pair, and the instances that only one set solves.
//!
//! An instance without a verdict in one of the compared sets is excluded from that comparison.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::prediction_sets::PredictionSet;
use crate::result::InstanceResult;
use crate::statistics::PairedComparison;

/// Comparison of prediction sets on the same instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Pairwise comparisons of prediction sets, for each verdict.
    pub pairs: Vec<PairOfSets>,
    /// Instances that each set solves, for each verdict.
    pub overlap: Vec<Overlap>,
}

/// Comparison of two prediction sets, for one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairOfSets {
    /// The verdict.
    pub measure: Metric,
    /// Name of the first prediction set.
    pub first: String,
    /// Name of the second prediction set.
    pub second: String,
    /// Number of instances with a verdict in both sets.
    pub instances: u64,
    /// Paired outcomes, with McNemar's test.
    #[serde(flatten)]
    pub paired: PairedComparison,
}

/// The instances that each set solves, for one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// The verdict.
    pub measure: Metric,
    /// Number of instances with a verdict in all sets.
    pub instances: u64,
    /// Number of instances solved in at least one set.
    pub union: u64,
    /// Number of instances solved in all sets.
    pub intersection: u64,
    /// Instances that only this set solves, by set.
    pub only: BTreeMap<String, Vec<String>>,
}

/// Compares prediction sets; returns `None` for fewer than two sets.
pub(super) fn compare(sets: &[PredictionSet]) -> Option<Comparison> {
    if sets.len() < 2 {
        return None;
    }
    let judged: Vec<BTreeMap<&str, &InstanceResult>> = sets
        .iter()
        .map(|set| {
            let judged = set.judged().into_iter();
            judged.map(|g| (g.instance_id.as_str(), g)).collect()
        })
        .collect();
    let mut pairs = Vec::new();
    for measure in Metric::ALL {
        for (at, first) in sets.iter().enumerate() {
            for (beyond, second) in sets.iter().enumerate().skip(at + 1) {
                let both: Vec<(bool, bool)> = judged[at]
                    .iter()
                    .filter_map(|(id, a)| {
                        let b = judged[beyond].get(id)?;
                        Some((measure.holds(a), measure.holds(b)))
                    })
                    .collect();
                pairs.push(PairOfSets {
                    measure,
                    first: first.prediction.clone(),
                    second: second.prediction.clone(),
                    instances: both.len() as u64,
                    paired: PairedComparison::from_pairs(both),
                });
            }
        }
    }
    let overlap = Metric::ALL
        .into_iter()
        .map(|measure| overlap(measure, sets, &judged))
        .collect();
    Some(Comparison { pairs, overlap })
}

fn overlap(
    measure: Metric,
    sets: &[PredictionSet],
    judged: &[BTreeMap<&str, &InstanceResult>],
) -> Overlap {
    let mut overlap = Overlap {
        measure,
        instances: 0,
        union: 0,
        intersection: 0,
        only: sets
            .iter()
            .map(|set| (set.prediction.clone(), Vec::new()))
            .collect(),
    };
    let Some(first) = judged.first() else {
        return overlap;
    };
    for id in first.keys() {
        let verdicts: Option<Vec<bool>> = judged
            .iter()
            .map(|set| set.get(id).map(|g| measure.holds(g)))
            .collect();
        let Some(verdicts) = verdicts else { continue };
        let solved = verdicts.iter().filter(|v| **v).count();
        overlap.instances += 1;
        overlap.union += u64::from(solved > 0);
        overlap.intersection += u64::from(solved == sets.len());
        let alone = verdicts.iter().position(|v| *v).filter(|_| solved == 1);
        if let Some(at) = alone
            && let Some(list) = overlap.only.get_mut(&sets[at].prediction)
        {
            list.push((*id).to_owned());
        }
    }
    overlap
}
