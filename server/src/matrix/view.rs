//! A matrix as clients see it: its cells, which patches are kept, and CodeT's ranking of them.

use std::collections::BTreeMap;

use serde::Serialize;
use testwright_evals::selection::{SelectionResult, codet_groups};
use testwright_tools::outcomes::report::Outcome;

use super::request::{MatrixInput, NamedPatch};
use crate::store::{JobStatus, Store, StoredMatrix, timestamp};
use testwright_config::error::{Error, Result};

/// A matrix, as far as it is known.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
pub struct Matrix {
    pub id: String,
    pub status: JobStatus,
    /// Why it came to no result.
    pub message: Option<String>,
    pub repository: String,
    /// The old code, as it was asked for.
    pub commit: Option<String>,
    /// What the patches are to fix.
    pub issue: Option<String>,
    /// RFC 3339, UTC, here and below.
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// How often a worker has taken it.
    pub attempts: i64,
    /// It is to end.
    pub cancelling: bool,
    /// Cells that are to be known.
    pub all_cells: u32,
    /// Names of the sets of tests.
    pub tests: Vec<String>,
    /// As they were given.
    pub patches: Vec<PatchResult>,
    /// Names of the kept patches, the best first: CodeT's ranking. Patches that pass the same tests are a group, which scores as
    /// many as its patches times the tests that they pass.
    pub ranking: Vec<String>,
    /// Those that are known.
    pub cells: Vec<Cell>,
}

/// A candidate patch.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
pub struct PatchResult {
    pub name: String,
    pub verdict: PatchVerdict,
    /// CodeT's score; 0 for one that is not kept.
    pub score: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchVerdict {
    /// A test that fails on the old code passes with it.
    Kept,
    /// Tests fail on the old code, and none of them passes with it.
    Dropped,
    /// No test fails on the old code, or it could not be tried.
    Undecided,
    /// Nothing is known of it yet.
    Waiting,
}

/// A set of tests on a patch.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
pub struct Cell {
    /// Name of the set.
    pub tests: String,
    /// Name of the patch.
    pub patch: String,
    /// Outcomes of its tests on the old code.
    pub old: BTreeMap<String, String>,
    /// Outcomes with the patch; none where no test fails on the old code.
    pub new: BTreeMap<String, String>,
    /// Of the tests that fail on the old code, those that pass with the patch.
    pub passed: Vec<String>,
    /// The others of them.
    pub failed: Vec<String>,
    /// Why it could not be tried.
    pub not_tried: Option<String>,
    /// What failed that is nobody's fault.
    pub infrastructure: Option<String>,
}

pub fn input(stored: &StoredMatrix) -> Result<MatrixInput> {
    serde_json::from_str(&stored.request)
        .map_err(|error| Error::infrastructure("read what is to be tried").cause(error))
}

/// The results that are there.
pub async fn results(store: &Store, stored: &StoredMatrix) -> Result<Vec<SelectionResult>> {
    let cells = store.cells(&stored.id).await?;
    let read = |cell: &String| {
        serde_json::from_str(cell)
            .map_err(|error| Error::infrastructure("read a cell of the matrix").cause(error))
    };
    cells.iter().map(read).collect()
}

impl Matrix {
    pub async fn of(store: &Store, stored: &StoredMatrix) -> Result<Self> {
        let input = input(stored)?;
        let results = results(store, stored).await?;
        let by_patch: Vec<SelectionResult> = input
            .patches
            .iter()
            .filter_map(|patch| of_patch(&patch.name, &results))
            .collect();
        let (ranking, scores) = ranked(&by_patch);
        let time = |milliseconds| timestamp(milliseconds).to_string();
        let patch = |named: &NamedPatch| PatchResult {
            name: named.name.clone(),
            verdict: verdict(by_patch.iter().find(|of| of.patch == named.name)),
            score: scores.get(&named.name).copied().unwrap_or_default(),
        };
        Ok(Matrix {
            id: stored.id.to_string(),
            status: stored.status,
            message: stored.message.clone(),
            repository: stored.repository.clone(),
            commit: input.commit.clone(),
            issue: input.issue.clone(),
            created_at: time(stored.created_at),
            started_at: stored.started_at.map(time),
            ended_at: stored.ended_at.map(time),
            attempts: stored.attempt,
            cancelling: stored.cancel && !stored.status.has_ended(),
            all_cells: u32::try_from(input.tests.len() * input.patches.len()).unwrap_or(u32::MAX),
            tests: input.tests.iter().map(|tests| tests.name.clone()).collect(),
            patches: input.patches.iter().map(patch).collect(),
            ranking,
            cells: results.iter().map(cell).collect(),
        })
    }
}

/// All tests on one patch, as if they were one set; `None` where nothing is known.
fn of_patch(patch: &str, results: &[SelectionResult]) -> Option<SelectionResult> {
    let mut of_patch = results.iter().filter(|result| result.patch == patch);
    let named = |result: &SelectionResult, ids: &[String]| -> Vec<String> {
        let of_set = ids.iter().map(|id| format!("{}: {id}", result.tests));
        of_set.collect()
    };
    let mut all = of_patch.next().cloned()?;
    all.passed = named(&all, &all.passed);
    all.failed = named(&all, &all.failed);
    for result in of_patch {
        all.passed.extend(named(result, &result.passed));
        all.failed.extend(named(result, &result.failed));
    }
    Some(all)
}

/// The names of the kept patches, the best first, and their scores.
fn ranked(by_patch: &[SelectionResult]) -> (Vec<String>, BTreeMap<String, u32>) {
    let by_patch: Vec<&SelectionResult> = by_patch.iter().collect();
    let (mut names, mut scores) = (Vec::new(), BTreeMap::new());
    for group in codet_groups(&by_patch) {
        for patch in group.patches {
            names.push(patch.patch.clone());
            let score = u32::try_from(group.score).unwrap_or(u32::MAX);
            scores.insert(patch.patch.clone(), score);
        }
    }
    (names, scores)
}

fn verdict(of_patch: Option<&SelectionResult>) -> PatchVerdict {
    match of_patch {
        None => PatchVerdict::Waiting,
        Some(all) if all.is_kept() => PatchVerdict::Kept,
        Some(all) if all.is_sorted() => PatchVerdict::Dropped,
        Some(_) => PatchVerdict::Undecided,
    }
}

fn cell(result: &SelectionResult) -> Cell {
    Cell {
        tests: result.tests.clone(),
        patch: result.patch.clone(),
        old: outcomes(&result.old),
        new: outcomes(&result.new),
        passed: result.passed.clone(),
        failed: result.failed.clone(),
        not_tried: result.not_tried.clone(),
        infrastructure: result.infrastructure.clone(),
    }
}

fn outcomes(outcomes: &BTreeMap<String, Outcome>) -> BTreeMap<String, String> {
    let named = outcomes.iter().map(|(id, outcome)| {
        let name = serde_json::to_value(outcome).unwrap_or_default();
        (id.clone(), name.as_str().unwrap_or_default().to_owned())
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn result(tests: &str, patch: &str, passed: &[&str], failed: &[&str]) -> SelectionResult {
        serde_json::from_value(serde_json::json!({
            "instance_id": "i", "tests": tests, "patch": patch, "passed": passed, "failed": failed, "resolves": null,
        }))
        .unwrap()
    }

    #[test]
    fn tests_of_several_sets_count_together() {
        let results = [
            result("a", "half", &["t"], &[]),
            result("b", "half", &[], &["t"]),
            result("a", "whole", &["t"], &[]),
            result("b", "whole", &["t"], &[]),
            result("a", "none", &[], &["t"]),
            result("b", "none", &[], &[]),
        ];
        let all: Vec<SelectionResult> = ["half", "whole", "none", "waiting"]
            .iter()
            .filter_map(|patch| of_patch(patch, &results))
            .collect();
        let verdicts: Vec<PatchVerdict> = all.iter().map(|of| verdict(Some(of))).collect();
        use PatchVerdict::{Dropped, Kept};
        assert_eq!(verdicts, [Kept, Kept, Dropped]);
        let (names, scores) = ranked(&all);
        assert_eq!(names, ["whole", "half"]);
        assert_eq!((scores["whole"], scores["half"]), (2, 1));
        assert_eq!(verdict(None), PatchVerdict::Waiting);
    }
}
