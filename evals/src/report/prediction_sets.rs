//! Groups results by prediction set, and adds missing predictions, which count as 0 and must not be absent from any
//! denominator. A set that is graded in part lacks those that were not graded: otherwise all of them would count, but
//! only some of the others, and its rates would be too low.

use std::collections::{BTreeMap, BTreeSet};

use super::RunMetadata;
use crate::predictions::WarningKind;
use crate::result::InstanceResult;
use crate::verdict::Strict;

/// Results of one prediction set.
#[derive(Debug, Clone)]
pub(super) struct PredictionSet {
    pub prediction: String,
    /// Results by instance, one each.
    pub all: Vec<InstanceResult>,
    /// Number of instances to be graded.
    pub instances: u64,
}

impl PredictionSet {
    /// Returns the results with a verdict, without infrastructure failures.
    pub(super) fn judged(&self) -> Vec<&InstanceResult> {
        let judged = self.all.iter().filter(|g| g.infrastructure.is_none());
        judged.collect()
    }
}

/// Groups results by the name of their prediction set.
pub(super) fn group(graded: Vec<InstanceResult>, run: &RunMetadata) -> Vec<PredictionSet> {
    let mut details: BTreeMap<String, (String, u64)> = BTreeMap::new();
    let mut by_set: BTreeMap<String, BTreeMap<String, InstanceResult>> = BTreeMap::new();
    for one in graded {
        let about = (one.repo.clone(), one.issue_tokens);
        details.insert(one.instance_id.clone(), about);
        by_set
            .entry(one.prediction.clone())
            .or_default()
            .insert(one.instance_id.clone(), one);
    }
    let mut added: BTreeMap<String, BTreeMap<String, InstanceResult>> = BTreeMap::new();
    for warning in &run.predictions {
        let (name, id) = (&warning.model_name_or_path, &warning.instance_id);
        if warning.kind == WarningKind::Missing
            && !by_set.entry(name.clone()).or_default().contains_key(id)
        {
            let result = missing(name, id, details.get(id));
            let added = added.entry(name.clone()).or_default();
            added.insert(id.clone(), result);
        }
    }
    for name in &run.sets {
        by_set.entry(name.clone()).or_default();
    }
    let sets = by_set.values().chain(added.values());
    let ids: BTreeSet<String> = sets.flat_map(|s| s.keys().cloned()).collect();
    let instances = run.instances.unwrap_or(0).max(ids.len() as u64);
    by_set
        .into_iter()
        .map(|(prediction, mut all)| {
            let added = added.remove(&prediction).unwrap_or_default();
            if (all.len() + added.len()) as u64 >= instances {
                all.extend(added);
            }
            PredictionSet {
                prediction,
                all: all.into_values().collect(),
                instances,
            }
        })
        .collect()
}

/// Returns the result of a missing prediction. The issue's length is 0 if no other result gives it.
fn missing(prediction: &str, id: &str, details: Option<&(String, u64)>) -> InstanceResult {
    let (repo, issue_tokens) = details.cloned().unwrap_or_else(|| (repository_of(id), 0));
    InstanceResult {
        instance_id: id.to_owned(),
        prediction: prediction.to_owned(),
        repo,
        issue_tokens,
        strict: Strict {
            fail_to_pass: false,
            reason: WarningKind::Missing.text().to_owned(),
        },
        ..InstanceResult::default()
    }
}

/// Returns the repository of an id such as `owner__name-number`.
fn repository_of(id: &str) -> String {
    let name = id.rsplit_once('-').map_or(id, |(name, _)| name);
    name.replacen("__", "/", 1)
}
