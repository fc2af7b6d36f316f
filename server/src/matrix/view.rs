//! A matrix for clients: its cells, the kept patches, and their ranking by CodeT.

use std::collections::BTreeMap;

use serde::Serialize;
use testwright_evals::selection::{SelectionResult, codet_groups};
use testwright_tools::outcomes::report::Outcome;

use super::request::{MatrixInput, NamedPatch};
use crate::store::{JobStatus, Store, StoredMatrix, timestamp};
use testwright_config::error::{Error, Result};

/// A matrix with its results so far.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
pub struct Matrix {
    /// Id of the matrix.
    pub id: String,
    /// Status of the matrix.
    pub status: JobStatus,
    /// Reason why it has no result.
    pub message: Option<String>,
    /// Repository: a URL, or a folder on the server.
    pub repository: String,
    /// Commit of the old code, as requested.
    pub commit: Option<String>,
    /// Issue that the patches should fix.
    pub issue: Option<String>,
    /// Times are RFC 3339, UTC.
    pub created_at: String,
    /// Time at which a worker started it.
    pub started_at: Option<String>,
    /// Time at which it ended.
    pub ended_at: Option<String>,
    /// Number of times a worker has claimed it.
    pub attempts: i64,
    /// Whether cancellation was requested.
    pub cancelling: bool,
    /// Number of cells of the complete matrix.
    pub all_cells: u32,
    /// Names of the sets of tests.
    pub tests: Vec<String>,
    /// Results of the patches, in the order of the request.
    pub patches: Vec<PatchResult>,
    /// Names of the kept patches, best first: CodeT's ranking. Patches that pass the same tests form a group. A group's
    /// score is the number of its patches times the number of tests that they pass.
    pub ranking: Vec<String>,
    /// Cells that have been tried.
    pub cells: Vec<Cell>,
}

/// A candidate patch.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
pub struct PatchResult {
    /// Name of the patch.
    pub name: String,
    /// Verdict on the patch.
    pub verdict: PatchVerdict,
    /// CodeT's score; 0 for a patch that is not kept.
    pub score: u32,
}

/// The verdict of tests on a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchVerdict {
    /// A test that fails on the old code passes with the patch.
    Kept,
    /// Tests fail on the old code, and none of them passes with the patch.
    Dropped,
    /// Either no test fails on the old code, or the patch could not be tried.
    Undecided,
    /// The patch has not been tried yet.
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
    /// Outcomes with the patch; empty if no test fails on the old code.
    pub new: BTreeMap<String, String>,
    /// Tests that fail on the old code and pass with the patch.
    pub passed: Vec<String>,
    /// Tests that fail on the old code and do not pass with the patch.
    pub failed: Vec<String>,
    /// Reason why it could not be tried.
    pub not_tried: Option<String>,
    /// Failure of the machine, if there was one.
    pub infrastructure: Option<String>,
}

/// Parses the stored request of a matrix.
///
/// # Errors
///
/// Fails if the stored request is invalid.
pub fn input(stored: &StoredMatrix) -> Result<MatrixInput> {
    serde_json::from_str(&stored.request)
        .map_err(|error| Error::infrastructure("read the request").cause(error))
}

/// Reads the stored cells.
///
/// # Errors
///
/// Fails if the database query fails or a stored cell is invalid.
pub async fn results(store: &Store, stored: &StoredMatrix) -> Result<Vec<SelectionResult>> {
    let cells = store.cells(&stored.id).await?;
    let read = |cell: &String| {
        serde_json::from_str(cell)
            .map_err(|error| Error::infrastructure("read a cell of the matrix").cause(error))
    };
    cells.iter().map(read).collect()
}

impl Matrix {
    /// Creates the view of a stored matrix.
    ///
    /// # Errors
    ///
    /// Fails if a database query fails, or if the stored request or a stored cell is invalid.
    pub async fn of(store: &Store, stored: &StoredMatrix) -> Result<Self> {
        let input = input(stored)?;
        let results = results(store, stored).await?;
        let by_patch: Vec<SelectionResult> = input
            .patches
            .iter()
            .filter_map(|patch| merge_cells(&patch.name, &results))
            .collect();
        let (ranking, scores) = ranked(&by_patch);
        let time = |milliseconds| timestamp(milliseconds).to_string();
        let patch = |named_patch: &NamedPatch| PatchResult {
            name: named_patch.name.clone(),
            verdict: verdict(by_patch.iter().find(|of| of.patch == named_patch.name)),
            score: scores.get(&named_patch.name).copied().unwrap_or_default(),
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

/// Merges the cells of a patch as if all tests were one set; `None` if there are no results.
fn merge_cells(patch: &str, results: &[SelectionResult]) -> Option<SelectionResult> {
    let mut of_patch = results.iter().filter(|result| result.patch == patch);
    let qualified_ids = |result: &SelectionResult, ids: &[String]| -> Vec<String> {
        let of_set = ids.iter().map(|id| format!("{}: {id}", result.tests));
        of_set.collect()
    };
    let mut all = of_patch.next().cloned()?;
    all.passed = qualified_ids(&all, &all.passed);
    all.failed = qualified_ids(&all, &all.failed);
    for result in of_patch {
        all.passed.extend(qualified_ids(result, &result.passed));
        all.failed.extend(qualified_ids(result, &result.failed));
    }
    Some(all)
}

/// Returns the names of the kept patches, best first, and their scores.
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
    let outcome_names = outcomes.iter().map(|(id, outcome)| {
        let name = serde_json::to_value(outcome).unwrap_or_default();
        (id.clone(), name.as_str().unwrap_or_default().to_owned())
    });
    outcome_names.collect()
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
    fn test_sets_are_scored_together() {
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
            .filter_map(|patch| merge_cells(patch, &results))
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
