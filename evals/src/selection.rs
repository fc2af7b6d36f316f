//! Ranking of code patches by generated tests: the result for each patch, and the quality of the ranking.

mod ranking;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::Shortage;
use testwright_tools::outcomes::report::Outcome;

use crate::predictions::Prediction;
use crate::statistics::Rate;

pub use ranking::{
    PatchGroup, RankedPatch, SelectionVerdict, codet_groups, rank_patches, tied_patches,
};

/// Rule by which a patch is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepRule {
    /// At least one test that fails on the old code passes with the patch.
    #[default]
    Any,
    /// All tests that fail on the old code pass with the patch.
    All,
}

impl KeepRule {
    fn is_any(&self) -> bool {
        *self == KeepRule::Any
    }
}

/// Result of a set of tests on a patch: an item of `results` in `selection.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelectionResult {
    /// Id of the instance.
    pub instance_id: String,
    /// Name of the tests (`model_name_or_path`).
    pub tests: String,
    /// Probability that the tests are right, from `testwright check`; it weighs them in the ranking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Rule by which the patch is kept.
    #[serde(default, skip_serializing_if = "KeepRule::is_any")]
    pub rule: KeepRule,
    /// Name of the patch (`model_name_or_path`).
    pub patch: String,
    /// Tests that fail on the old code and pass with the patch.
    pub passed: Vec<String>,
    /// Tests that fail on the old code and do not pass with the patch. If the outcomes are forged, these are all tests
    /// that fail on the old code.
    pub failed: Vec<String>,
    /// Tests of the same files that pass on the old code, and with the patch fail, error or do not run.
    #[serde(default)]
    pub regresses: Vec<String>,
    /// Why tests that pytest collects on the old code cannot be collected with the patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncollected: Option<String>,
    /// Whether only the tests of this set ran, so that a patch that breaks an existing test is not noticed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_existing_tests: bool,
    /// Why the outcomes are forged: something other than the tests decides how they come out.
    #[serde(default)]
    pub forged: Option<String>,
    /// Code of the patch that can satisfy assertions whatever they check, or that uses pytest, as
    /// `PATH:LINE: REASON`.
    #[serde(default)]
    pub suspicions: Vec<String>,
    /// Files of the patch that do not count because they are not code, as `PATH: REASON`.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Outcomes of the tests on the old code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub old: BTreeMap<String, Outcome>,
    /// Outcomes of the tests with the patch; empty if no test fails on the old code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub new: BTreeMap<String, Outcome>,
    /// Whether every test of the golden tests' files that passes with the golden patch also passes with this one, and
    /// no outcome is forged; `None` without golden tests that pass with the golden patch.
    pub resolves: Option<bool>,
    /// Why the patch could not be tried with the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_tried: Option<String>,
    /// Failure that neither the tests nor the patch caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure: Option<String>,
    /// Resource that the machine ran out of, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
}

impl SelectionResult {
    pub(crate) fn new(tests: &Prediction, patch: &Prediction) -> Self {
        SelectionResult {
            instance_id: patch.instance_id.clone(),
            tests: tests.model_name_or_path.clone(),
            patch: patch.model_name_or_path.clone(),
            ..SelectionResult::default()
        }
    }
}

/// Quality of a set of tests for ranking patches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelectionSummary {
    /// Name of the tests.
    pub tests: String,
    /// Patches without infrastructure failures.
    pub patches: u64,
    /// Patches that pass at least one test that fails on the old code (by the rule `all`, every such test), and are not
    /// forged.
    pub selected: u64,
    /// Selected patches that break a test that passes on the old code.
    #[serde(default)]
    pub regressing: u64,
    /// Patches whose outcomes are forged.
    #[serde(default)]
    pub forged: u64,
    /// Patches that pass no test (by the rule `all`, not every test) and fail at least one, and are not forged.
    pub dropped: u64,
    /// Patches for which no test fails on the old code, or that could not be tried.
    pub undecided: u64,
    /// Patches with infrastructure failures, which are in no other figure.
    pub infrastructure: u64,
    /// Share of the selected patches that resolve the issue.
    pub precision: Rate,
    /// Share of the patches that resolve the issue and are selected, among all that resolve it.
    pub recall: Rate,
    /// Share of instances in which CodeT's choice among several patches resolves the issue.
    pub codet: Rate,
}

impl SelectionSummary {
    /// Returns the number of patches with the verdict `kept`: the selected ones that break no test.
    pub fn kept(&self) -> u64 {
        self.selected.saturating_sub(self.regressing)
    }

    /// Returns whether precision or recall is defined. Both need golden tests that decide on a patch.
    pub fn has_rates(&self) -> bool {
        self.precision.denominator + self.recall.denominator > 0
    }
}

/// The place of a patch among those of its instance, by all sets of tests: an item of `ranking` in `selection.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatchRank {
    /// Id of the instance.
    pub instance_id: String,
    /// Name of the patch (`model_name_or_path`).
    pub patch: String,
    /// Place of the patch, from 1. Patches that tie share a place. `None` for a patch that passes no test or is forged.
    pub rank: Option<u64>,
    /// Verdict on the patch, as if all tests were one set.
    pub verdict: SelectionVerdict,
    /// CodeT's score, with the tests weighed by probability; 0 for a patch without a rank.
    pub score: f64,
    /// Number of decisive sets of which the patch passes every test that fails on the old code.
    pub passed_sets: u64,
    /// Number of decisive sets: those with a test that fails on the old code and that was tried on the patch.
    pub sets: u64,
    /// Reasons against the patch, or why nothing is known about it.
    pub reasons: Vec<String>,
}

/// Groups results by a key. The results of a group keep their order.
pub fn group_results<'r, K: Ord>(
    results: impl IntoIterator<Item = &'r SelectionResult>,
    key: impl Fn(&'r SelectionResult) -> K,
) -> BTreeMap<K, Vec<&'r SelectionResult>> {
    let mut groups: BTreeMap<K, Vec<&SelectionResult>> = BTreeMap::new();
    for result in results {
        groups.entry(key(result)).or_default().push(result);
    }
    groups
}

/// Returns the rankings of all instances, in order, each with the best patch first.
pub fn rankings(results: &[SelectionResult]) -> Vec<PatchRank> {
    let by_instance = group_results(results, |result| result.instance_id.as_str());
    let ranked = by_instance.values().map(|of_instance| {
        let ranked = rank_patches(of_instance);
        let place = |patch: &RankedPatch| (patch.result.is_clean(), patch.score);
        let rank = |patch: &RankedPatch| {
            let mut better = ranked.iter();
            let first = better.position(|other| place(other) == place(patch))?;
            patch.result.is_kept().then_some(first as u64 + 1)
        };
        let ranks = ranked.iter().map(|patch| PatchRank {
            instance_id: patch.result.instance_id.clone(),
            patch: patch.result.patch.clone(),
            rank: rank(patch),
            verdict: patch.result.verdict(),
            score: patch.score,
            passed_sets: patch.passed_sets as u64,
            sets: patch.sets as u64,
            reasons: patch.result.reasons_or_default(),
        });
        ranks.collect::<Vec<_>>()
    });
    ranked.flatten().collect()
}

/// The patch that CodeT's rule chooses for an instance, based on one set of tests: an item of `choices` in
/// `selection.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Id of the instance.
    pub instance_id: String,
    /// Name of the tests (`model_name_or_path`).
    pub tests: String,
    /// Name of the chosen patch (`model_name_or_path`).
    pub patch: String,
    /// Whether the patch resolves the issue; `None` without golden tests that pass with the golden patch.
    pub resolves: Option<bool>,
    /// Names of the patches that share the first place, in order. The chosen patch is the first one.
    #[serde(default)]
    pub tied: Vec<String>,
}

/// Returns the instances whose patches ran no existing test, in order. A patch that breaks one is not noticed there.
pub fn without_existing_tests(results: &[SelectionResult]) -> Vec<&str> {
    let mut by_instance: BTreeMap<&str, bool> = BTreeMap::new();
    for result in results.iter().filter(|result| result.is_sorted()) {
        let is_without = by_instance.entry(&result.instance_id).or_insert(true);
        *is_without &= result.no_existing_tests;
    }
    by_instance.retain(|_, is_without| *is_without);
    by_instance.into_keys().collect()
}

/// Returns the choices by instance and set of tests. A single patch, or patches that pass no test, give no choice.
pub fn choices(results: &[SelectionResult]) -> Vec<Choice> {
    let valid = results.iter().filter(|r| r.infrastructure.is_none());
    let groups = group_results(valid, |r| (r.instance_id.as_str(), r.tests.as_str()));
    let several = groups.into_values().filter(|group| group.len() > 1);
    several
        .filter_map(|group| {
            let tied = tied_patches(&group);
            let chosen = tied.first()?;
            Some(Choice {
                instance_id: chosen.instance_id.clone(),
                tests: chosen.tests.clone(),
                patch: chosen.patch.clone(),
                resolves: chosen.resolves,
                tied: tied.iter().map(|result| result.patch.clone()).collect(),
            })
        })
        .collect()
}

/// Returns the summaries by set of tests, in order.
pub fn summaries(results: &[SelectionResult]) -> Vec<SelectionSummary> {
    let by_tests = group_results(results, |result| result.tests.as_str());
    let choices = choices(results);
    by_tests
        .into_iter()
        .map(|(tests, of)| summary(tests, &of, &choices))
        .collect()
}

fn summary(tests: &str, all: &[&SelectionResult], choices: &[Choice]) -> SelectionSummary {
    let valid_results: Vec<&&SelectionResult> =
        all.iter().filter(|r| r.infrastructure.is_none()).collect();
    let selected_results: Vec<&&&SelectionResult> =
        valid_results.iter().filter(|r| r.is_kept()).collect();
    let resolves = |r: &SelectionResult| r.resolves == Some(true);
    let good = selected_results.iter().filter(|r| resolves(r)).count();
    // Without golden tests it is unknown whether a patch resolves the issue.
    let judged = selected_results.iter();
    let judged = judged.filter(|r| r.resolves.is_some()).count();
    let resolving = valid_results.iter().filter(|r| resolves(r)).count();
    let choices: Vec<bool> = (choices.iter())
        .filter(|choice| choice.tests == tests)
        .filter_map(|choice| choice.resolves)
        .collect();
    let count = |verdict: SelectionVerdict| {
        let matches = valid_results.iter().filter(|r| r.verdict() == verdict);
        matches.count() as u64
    };
    SelectionSummary {
        tests: tests.to_owned(),
        patches: valid_results.len() as u64,
        selected: selected_results.len() as u64,
        regressing: count(SelectionVerdict::Regresses),
        forged: count(SelectionVerdict::Forged),
        dropped: count(SelectionVerdict::Dropped),
        undecided: count(SelectionVerdict::Undecided),
        infrastructure: (all.len() - valid_results.len()) as u64,
        precision: Rate::new(good, judged),
        recall: Rate::new(good, resolving),
        codet: Rate::new(choices.iter().filter(|good| **good).count(), choices.len()),
    }
}

#[cfg(test)]
mod tests;
