//! A matrix for its page.

use serde::Serialize;

use super::matrix_origin::MatrixOrigin;
use crate::matrix::view::{Cell, Matrix, PatchResult};

#[derive(Debug, Serialize)]
pub(super) struct MatrixView {
    #[serde(flatten)]
    matrix: Matrix,
    #[serde(flatten)]
    origin: MatrixOrigin,
    may_cancel: bool,
    may_retry: bool,
    patch_rows: Vec<PatchRow>,
    cell_tables: Vec<CellView>,
}

#[derive(Debug, Serialize)]
struct PatchRow {
    name: String,
    verdict: &'static str,
    /// Reasons against the patch.
    reasons: String,
    /// Rank, from 1; empty for a patch that passes no test.
    rank: String,
    cells: Vec<SmallCell>,
}

#[derive(Debug, Serialize)]
struct SmallCell {
    class: &'static str,
    text: String,
}

/// The tests of a cell with their outcomes.
#[derive(Debug, Serialize)]
struct CellView {
    title: String,
    rows: Vec<[String; 3]>,
    why: Option<String>,
}

impl MatrixView {
    pub(super) fn new(matrix: Matrix, origin: MatrixOrigin) -> Self {
        let row = |patch: &PatchResult| row(&matrix, patch);
        MatrixView {
            may_cancel: !matrix.status.has_ended() && !matrix.cancelling,
            may_retry: matrix.status.may_be_retried(),
            patch_rows: matrix.patches.iter().map(row).collect(),
            cell_tables: matrix.cells.iter().map(cell_view).collect(),
            matrix,
            origin,
        }
    }
}

fn row(matrix: &Matrix, patch: &PatchResult) -> PatchRow {
    let rank = matrix.ranking.iter().position(|name| *name == patch.name);
    let cell = |tests: &String| {
        let mut cells = matrix.cells.iter();
        summarize_cell(cells.find(|cell| cell.patch == patch.name && cell.tests == *tests))
    };
    PatchRow {
        name: patch.name.clone(),
        verdict: patch.verdict.as_str(),
        reasons: patch.reasons.join("; "),
        rank: rank.map_or(String::new(), |rank| (rank + 1).to_string()),
        cells: matrix.tests.iter().map(cell).collect(),
    }
}

fn summarize_cell(cell: Option<&Cell>) -> SmallCell {
    let Some(cell) = cell else {
        return SmallCell {
            class: "",
            text: "waiting".to_owned(),
        };
    };
    let all = cell.passed.len() + cell.failed.len();
    let (class, text) = match () {
        () if cell.infrastructure.is_some() => ("", "the machine failed".to_owned()),
        () if cell.not_tried.is_some() => ("", "not tried".to_owned()),
        () if cell.forged.is_some() => ("no", "forged".to_owned()),
        () if all == 0 => ("", "no test fails on the old code".to_owned()),
        () if cell.passed.is_empty() => ("no", format!("0 of {all} pass")),
        () if !cell.regresses.is_empty() => {
            let (passed, broken) = (cell.passed.len(), cell.regresses.len());
            (
                "no",
                format!("{passed} of {all} pass, {broken} others break"),
            )
        }
        () => ("yes", format!("{} of {all} pass", cell.passed.len())),
    };
    SmallCell { class, text }
}

fn cell_view(cell: &Cell) -> CellView {
    let outcome = |outcome: Option<&String>| outcome.cloned().unwrap_or_default();
    let row = |(id, old): (&String, &String)| [id.clone(), old.clone(), outcome(cell.new.get(id))];
    CellView {
        title: format!("{} on {}", cell.tests, cell.patch),
        rows: cell.old.iter().map(row).collect(),
        why: [&cell.infrastructure, &cell.not_tried, &cell.forged]
            .into_iter()
            .find_map(Clone::clone),
    }
}
