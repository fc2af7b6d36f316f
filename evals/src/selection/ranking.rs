//! Ranking of patches: verdicts, CodeT's groups, and patches over several sets of tests.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeepRule, SelectionResult};

/// Maximum tests that a reason names.
const MAX_NAMED: usize = 3;

/// The verdict of tests on a patch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SelectionVerdict {
    /// A test that fails on the old code passes with the patch; by the rule `all`, every such test passes.
    Kept,
    /// The patch meets the condition of `kept`, but a test that passed before does not pass with it.
    Regresses,
    /// Tests fail on the old code, and none of them passes with the patch; by the rule `all`, not all of them.
    Dropped,
    /// Either no test fails on the old code, or the patch could not be tried.
    Undecided,
    /// The patch decides how tests come out, so their outcomes do not count.
    Forged,
}

impl SelectionVerdict {
    /// Returns the verdict as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            SelectionVerdict::Kept => "kept",
            SelectionVerdict::Regresses => "regresses",
            SelectionVerdict::Dropped => "dropped",
            SelectionVerdict::Undecided => "undecided",
            SelectionVerdict::Forged => "forged",
        }
    }
}

impl SelectionResult {
    /// Returns whether the patch passes at least one of the tests that fail on the old code (by [`KeepRule::All`], all
    /// of them), and its outcomes are not forged.
    pub fn is_kept(&self) -> bool {
        let is_enough = self.rule == KeepRule::Any || self.failed.is_empty();
        self.forged.is_none() && !self.passed.is_empty() && is_enough
    }

    /// Returns whether at least one test that fails on the old code was tried on the patch.
    pub fn is_sorted(&self) -> bool {
        !self.passed.is_empty() || !self.failed.is_empty()
    }

    /// Returns whether nothing speaks against the outcomes: the patch is not forged or suspicious, and breaks no test.
    pub fn is_clean(&self) -> bool {
        self.forged.is_none() && self.suspicions.is_empty() && self.regresses.is_empty()
    }

    /// Returns the verdict on the patch.
    pub fn verdict(&self) -> SelectionVerdict {
        match () {
            () if self.forged.is_some() => SelectionVerdict::Forged,
            () if self.is_kept() && !self.regresses.is_empty() => SelectionVerdict::Regresses,
            () if self.is_kept() => SelectionVerdict::Kept,
            () if self.is_sorted() => SelectionVerdict::Dropped,
            () => SelectionVerdict::Undecided,
        }
    }

    /// Returns what speaks against the patch, or why it could not be tried.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.forged.iter().cloned().collect();
        let causes = [
            ("not tried", &self.not_tried),
            ("infrastructure", &self.infrastructure),
        ];
        for (what, cause) in causes {
            reasons.extend(cause.iter().map(|cause| format!("{what}: {cause}")));
        }
        reasons.extend(self.uncollected.iter().cloned());
        // If tests cannot be collected, that is why the others do not run.
        if !self.regresses.is_empty() && self.uncollected.is_none() {
            let names = self.regresses.iter().take(MAX_NAMED);
            let mut names: Vec<String> = names.cloned().collect();
            if self.regresses.len() > MAX_NAMED {
                names.push(format!("{} more", self.regresses.len() - MAX_NAMED));
            }
            reasons.push(format!("breaks {}", names.join(", ")));
        }
        reasons.extend(self.suspicions.iter().cloned());
        // If nothing is left of a patch, `not_tried` names the files.
        if self.not_tried.is_none() {
            let left_out = self.left_out.iter();
            reasons.extend(left_out.map(|file| format!("left out {file}")));
        }
        reasons
    }

    /// Returns the reasons, or for a patch that is undecided without one, that no test fails on the old code.
    pub fn reasons_or_default(&self) -> Vec<String> {
        let reasons = self.reasons();
        match self.verdict() {
            SelectionVerdict::Undecided if reasons.is_empty() => {
                vec!["no test fails on the old code".to_owned()]
            }
            _ => reasons,
        }
    }
}

/// Patches that pass the same tests. Clean patches are not in a group with others.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchGroup<'r> {
    /// Number of patches times the sum of the weights of the tests they pass, rounded to nine decimals.
    pub score: f64,
    /// Whether the patches are clean (see [`SelectionResult::is_clean`]).
    pub is_clean: bool,
    /// Results of the patches in the group.
    pub patches: Vec<&'r SelectionResult>,
}

/// Whether the patches of a group are clean, and the tests that they pass.
type GroupKey<'r> = (bool, BTreeSet<&'r String>);

/// Groups patches that pass the same tests of one set, as CodeT does (arXiv 2207.10397). The score of a group is its
/// number of patches times the number of tests they pass. The best group comes first, but groups of clean patches come
/// before others. Patches that are forged or pass no test are in no group.
pub fn codet_groups<'r>(of_instance: &[&'r SelectionResult]) -> Vec<PatchGroup<'r>> {
    // The tests of one set have the same weight, so it cannot change their ranking.
    group_patches(of_instance, &BTreeMap::new())
}

/// Groups patches as [`codet_groups`] does, with weights by test id. Other tests weigh 1.
fn group_patches<'r>(
    of_instance: &[&'r SelectionResult],
    weights: &BTreeMap<String, f64>,
) -> Vec<PatchGroup<'r>> {
    let mut groups: Vec<(GroupKey<'r>, Vec<&'r SelectionResult>)> = Vec::new();
    for &result in of_instance.iter().filter(|r| r.is_kept()) {
        let key: GroupKey<'r> = (result.is_clean(), result.passed.iter().collect());
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, group)) => group.push(result),
            None => groups.push((key, vec![result])),
        }
    }
    let scored = groups
        .into_iter()
        .map(|((is_clean, tests), patches)| PatchGroup {
            score: score(&tests, patches.len(), weights),
            is_clean,
            patches,
        });
    let mut scored: Vec<PatchGroup<'r>> = scored.collect();
    scored.sort_by(|a, b| {
        let clean_first = b.is_clean.cmp(&a.is_clean);
        clean_first.then(b.score.total_cmp(&a.score))
    });
    scored
}

fn score(tests: &BTreeSet<&String>, patches: usize, weights: &BTreeMap<String, f64>) -> f64 {
    let weight = |test: &&String| weights.get(*test).copied().unwrap_or(1.0);
    let sum: f64 = tests.iter().map(weight).sum();
    // Rounding errors of the sum must not break ties: 0.1 + 0.2 + 0.3 is not 0.6.
    (patches as f64 * sum * 1e9).round() / 1e9
}

/// Returns the patches that share the first place of CodeT's ranking, in order; empty if no patch passes a test.
pub fn tied_patches<'r>(of_instance: &[&'r SelectionResult]) -> Vec<&'r SelectionResult> {
    let groups = codet_groups(of_instance);
    let Some(best) = groups.first() else {
        return Vec::new();
    };
    let is_equal =
        |group: &&PatchGroup<'_>| group.is_clean == best.is_clean && group.score == best.score;
    let tied = groups.iter().filter(is_equal);
    tied.flat_map(|group| group.patches.iter().copied())
        .collect()
}

/// A patch with its results on all sets of tests of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedPatch {
    /// The results, as if all tests were one set.
    pub result: SelectionResult,
    /// CodeT's score, with the tests weighed by probability; 0 for a patch that is not kept.
    pub score: f64,
    /// Number of decisive sets of which the patch passes every test that fails on the old code.
    pub passed_sets: usize,
    /// Number of decisive sets: those with a test that fails on the old code and that was tried on the patch.
    pub sets: usize,
}

/// Ranks the patches of an instance by all sets of tests, best first. The probability of a set is the weight of each of
/// its tests; sets without one weigh 1. Patches in no group come last.
pub fn rank_patches(of_instance: &[&SelectionResult]) -> Vec<RankedPatch> {
    let mut names: Vec<&str> = Vec::new();
    for result in of_instance {
        if !names.contains(&result.patch.as_str()) {
            names.push(&result.patch);
        }
    }
    let merged: Vec<SelectionResult> = names
        .into_iter()
        .filter_map(|patch| merge_test_sets(patch, of_instance))
        .collect();
    let of_patches: Vec<&SelectionResult> = merged.iter().collect();
    let mut weights = BTreeMap::new();
    for result in of_instance {
        if let Some(probability) = result.probability {
            let passed = qualified_ids(result, &result.passed).into_iter();
            weights.extend(passed.map(|id| (id, probability)));
        }
    }
    let rank = |result: &SelectionResult, score: f64| {
        let of_patch = of_instance.iter().filter(|r| r.patch == result.patch);
        let decisive: Vec<&&SelectionResult> = of_patch.filter(|r| r.is_sorted()).collect();
        let passes = |r: &&&&SelectionResult| r.is_kept() && r.failed.is_empty();
        RankedPatch {
            result: result.clone(),
            score,
            passed_sets: decisive.iter().filter(passes).count(),
            sets: decisive.len(),
        }
    };
    let mut ranked = Vec::new();
    for group in group_patches(&of_patches, &weights) {
        ranked.extend(group.patches.iter().map(|result| rank(result, group.score)));
    }
    let mut others: Vec<&SelectionResult> = merged.iter().filter(|r| !r.is_kept()).collect();
    others.sort_by_key(|result| result.verdict());
    ranked.extend(others.into_iter().map(|result| rank(result, 0.0)));
    ranked
}

/// Returns the ids of tests, with the name of their set in front.
fn qualified_ids(result: &SelectionResult, ids: &[String]) -> Vec<String> {
    let of_set = ids.iter().map(|id| format!("{}: {id}", result.tests));
    of_set.collect()
}

/// Merges the results of a patch as if all tests were one set; `None` if there are no results.
fn merge_test_sets(patch: &str, of_instance: &[&SelectionResult]) -> Option<SelectionResult> {
    let mut merged: Option<SelectionResult> = None;
    for result in of_instance.iter().filter(|result| result.patch == patch) {
        let passed = qualified_ids(result, &result.passed);
        let failed = qualified_ids(result, &result.failed);
        let Some(all) = &mut merged else {
            merged = Some(SelectionResult {
                passed,
                failed,
                // The sets have different probabilities.
                probability: None,
                ..(**result).clone()
            });
            continue;
        };
        all.passed.extend(passed);
        all.failed.extend(failed);
        for (to, from) in [
            (&mut all.forged, &result.forged),
            (&mut all.uncollected, &result.uncollected),
            (&mut all.not_tried, &result.not_tried),
            (&mut all.infrastructure, &result.infrastructure),
        ] {
            if to.is_none() {
                to.clone_from(from);
            }
        }
        for (to, from) in [
            (&mut all.regresses, &result.regresses),
            (&mut all.suspicions, &result.suspicions),
            (&mut all.left_out, &result.left_out),
        ] {
            let new = from.iter().filter(|text| !to.contains(text));
            let new: Vec<String> = new.cloned().collect();
            to.extend(new);
        }
        if result.resolves == Some(false) {
            all.resolves = Some(false);
        }
    }
    merged
}

#[cfg(test)]
mod tests;
