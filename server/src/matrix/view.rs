//! A matrix for clients: its cells, the kept patches, and their ranking by CodeT.

use std::collections::BTreeMap;

use serde::Serialize;
use testwright_evals::selection::{RankedPatch, SelectionResult, SelectionVerdict, rank_patches};
use testwright_tools::outcomes::report::Outcome;

use super::request::{MatrixInput, NamedPatch};
use crate::json::decode;
use crate::store::{JobStatus, Store, StoredMatrix, timestamp};
use testwright_config::error::Result;

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
    /// Names of the patches that pass a test, best first: CodeT's ranking. Patches that pass the same tests form a
    /// group. A group's score is the number of its patches times the number of tests that they pass. Patches that break
    /// another test or are suspicious come after all others.
    pub ranking: Vec<String>,
    /// Names of the patches that share the first place of the ranking; empty if there is a single best patch.
    pub ties: Vec<String>,
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
    /// CodeT's score; 0 for a patch that passes no test.
    pub score: f64,
    /// Number of test sets of which the patch passes every test that fails on the old code.
    pub passed_sets: u32,
    /// Number of test sets with a test that fails on the old code and that was tried on the patch.
    pub decisive_sets: u32,
    /// Reasons against the patch.
    pub reasons: Vec<String>,
}

/// The verdict of tests on a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchVerdict {
    /// A test that fails on the old code passes with the patch.
    Kept,
    /// A test that fails on the old code passes with the patch, but another one that passed before does not.
    Regresses,
    /// The patch decides how tests come out, so their outcomes do not count.
    Forged,
    /// Tests fail on the old code, and none of them passes with the patch.
    Dropped,
    /// Either no test fails on the old code, or the patch could not be tried.
    Undecided,
    /// The patch has not been tried yet.
    Waiting,
}

impl PatchVerdict {
    /// Returns the verdict as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            PatchVerdict::Kept => "kept",
            PatchVerdict::Regresses => "regresses",
            PatchVerdict::Forged => "forged",
            PatchVerdict::Dropped => "dropped",
            PatchVerdict::Undecided => "undecided",
            PatchVerdict::Waiting => "waiting",
        }
    }
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
    /// Tests of the same files that pass on the old code and not with the patch.
    pub regresses: Vec<String>,
    /// Why the outcomes are forged, if they are.
    pub forged: Option<String>,
    /// Code of the patch that can satisfy assertions whatever they check, or that uses pytest, as `PATH:LINE: REASON`.
    pub suspicions: Vec<String>,
    /// Files of the patch that do not count because they are not code, as `PATH: REASON`.
    pub left_out: Vec<String>,
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
    decode(&stored.request, "read the request")
}

/// Returns the number of cells of the complete matrix.
pub fn cell_count(input: &MatrixInput) -> u32 {
    u32::try_from(input.tests.len() * input.patches.len()).unwrap_or(u32::MAX)
}

/// Reads the stored cells.
///
/// # Errors
///
/// Fails if the database query fails or a stored cell is invalid.
pub async fn results(store: &Store, stored: &StoredMatrix) -> Result<Vec<SelectionResult>> {
    let cells = store.cells(&stored.id).await?;
    let read = |cell: &String| decode(cell, "read a cell of the matrix");
    cells.iter().map(read).collect()
}

impl Matrix {
    /// Creates the view of a stored matrix.
    ///
    /// # Errors
    ///
    /// Fails if a database query fails, or if the stored request or a stored cell is invalid.
    pub async fn load(store: &Store, stored: &StoredMatrix) -> Result<Self> {
        let input = input(stored)?;
        let results = results(store, stored).await?;
        // The order of the request decides between equal patches.
        let in_order: Vec<&SelectionResult> = input
            .patches
            .iter()
            .flat_map(|patch| {
                results
                    .iter()
                    .filter(move |result| result.patch == patch.name)
            })
            .collect();
        let ranked = rank_patches(&in_order);
        let time = |milliseconds| timestamp(milliseconds).to_string();
        let patch = |named_patch: &NamedPatch| patch_result(&named_patch.name, &ranked);
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
            all_cells: cell_count(&input),
            tests: input.tests.iter().map(|tests| tests.name.clone()).collect(),
            patches: input.patches.iter().map(patch).collect(),
            ranking: ranking(&ranked),
            ties: ties(&ranked),
            cells: results.iter().map(cell).collect(),
        })
    }
}

/// Returns the names of the patches that pass a test, best first.
fn ranking(ranked: &[RankedPatch]) -> Vec<String> {
    let ranked = ranked.iter().filter(|patch| patch.result.is_kept());
    ranked.map(|patch| patch.result.patch.clone()).collect()
}

/// Returns the names of the patches that share the first place, if there are several.
fn ties(ranked: &[RankedPatch]) -> Vec<String> {
    let place = |patch: &&RankedPatch| (patch.result.is_clean(), patch.score);
    let kept = ranked.iter().filter(|patch| patch.result.is_kept());
    let best = kept.clone().next().as_ref().map(place);
    let tied = kept.filter(|patch| Some(place(patch)) == best);
    let names: Vec<String> = tied.map(|patch| patch.result.patch.clone()).collect();
    if names.len() > 1 { names } else { Vec::new() }
}

fn patch_result(name: &str, ranked: &[RankedPatch]) -> PatchResult {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let patch = ranked.iter().find(|patch| patch.result.patch == name);
    PatchResult {
        name: name.to_owned(),
        verdict: patch.map_or(PatchVerdict::Waiting, |patch| verdict(&patch.result)),
        score: patch.map_or(0.0, |patch| patch.score),
        passed_sets: patch.map_or(0, |patch| count(patch.passed_sets)),
        decisive_sets: patch.map_or(0, |patch| count(patch.sets)),
        reasons: patch.map_or_else(Vec::new, |patch| patch.result.reasons()),
    }
}

fn verdict(result: &SelectionResult) -> PatchVerdict {
    match result.verdict() {
        SelectionVerdict::Kept => PatchVerdict::Kept,
        SelectionVerdict::Regresses => PatchVerdict::Regresses,
        SelectionVerdict::Forged => PatchVerdict::Forged,
        SelectionVerdict::Dropped => PatchVerdict::Dropped,
        SelectionVerdict::Undecided => PatchVerdict::Undecided,
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
        regresses: result.regresses.clone(),
        forged: result.forged.clone(),
        suspicions: result.suspicions.clone(),
        left_out: result.left_out.clone(),
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
mod tests;
