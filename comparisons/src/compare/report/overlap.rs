//! Finds the instances that systems solve in common.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data::Data;

/// Overlap by strict F→P of first samples. Instances without a verdict for every system are excluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// Number of instances with a verdict for every system.
    pub instances: u64,
    /// Number of instances that at least one system solves.
    pub union: u64,
    /// Number of instances that all systems solve.
    pub intersection: u64,
    /// Instances by the exact set of systems that solve them, largest group first; unsolved instances are in no group.
    pub groups: Vec<OverlapGroup>,
}

/// Instances that exactly the same systems solve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapGroup {
    /// Positions of the systems in the report.
    pub systems: Vec<usize>,
    /// Ids of the instances.
    pub instances: Vec<String>,
}

pub(super) fn overlap(data: &Data) -> Overlap {
    let judged: Vec<usize> = (0..data.systems.len())
        .filter(|at| data.systems[*at].system.oracle_samples.is_none())
        .collect();
    let mut groups: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
    let mut instances = 0;
    for (at, instance) in data.plan.instances.iter().enumerate() {
        let verdicts: Option<Vec<bool>> = judged
            .iter()
            .map(|system| Some(data.systems[*system].first(at)?.fail_to_pass))
            .collect();
        let Some(verdicts) = verdicts else { continue };
        instances += 1;
        let solved = judged.iter().zip(&verdicts).filter(|(_, solved)| **solved);
        let solved: Vec<usize> = solved.map(|(system, _)| *system).collect();
        if !solved.is_empty() {
            groups.entry(solved).or_default().push(instance.id.clone());
        }
    }
    let union = groups.values().map(|of| of.len() as u64).sum();
    let intersection = groups.get(&judged).map_or(0, |of| of.len() as u64);
    let mut groups: Vec<OverlapGroup> = groups
        .into_iter()
        .map(|(systems, instances)| OverlapGroup { systems, instances })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.instances.len()));
    Overlap {
        instances,
        union,
        intersection,
        groups,
    }
}
