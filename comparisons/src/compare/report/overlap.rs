//! Which systems solve the same instances.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data::Data;

/// By strict F→P of first samples; instances without a verdict for every system are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    pub instances: u64,
    /// Solved by some system.
    pub union: u64,
    /// Solved by all.
    pub intersection: u64,
    /// By exactly these systems, the largest group first; those that nobody solves are none.
    pub groups: Vec<OverlapGroup>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapGroup {
    /// Positions in the report.
    pub systems: Vec<usize>,
    pub instances: Vec<String>,
}

pub fn overlap(data: &Data) -> Overlap {
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
