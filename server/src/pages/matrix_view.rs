//! A matrix for its page.

use serde::Serialize;
use serde_json::{Value, json};

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
    patch_rows: Vec<Value>,
    /// The tests of each cell with their outcomes.
    cell_tables: Vec<Value>,
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

fn row(matrix: &Matrix, patch: &PatchResult) -> Value {
    let rank = matrix.ranking.iter().position(|name| *name == patch.name);
    let cell = |tests: &String| {
        let mut cells = matrix.cells.iter();
        summarize_cell(cells.find(|cell| cell.patch == patch.name && cell.tests == *tests))
    };
    json!({
        "name": patch.name,
        "verdict": patch.verdict.as_str(),
        // The reasons against the patch.
        "reasons": patch.reasons.join("; "),
        // From 1; empty for a patch that passes no test.
        "rank": rank.map_or(String::new(), |rank| (rank + 1).to_string()),
        "cells": matrix.tests.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn summarize_cell(cell: Option<&Cell>) -> Value {
    let Some(cell) = cell else {
        return json!({ "class": "", "text": "waiting" });
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
    json!({ "class": class, "text": text })
}

fn cell_view(cell: &Cell) -> Value {
    let outcome = |outcome: Option<&String>| outcome.cloned().unwrap_or_default();
    let row = |(id, old): (&String, &String)| [id.clone(), old.clone(), outcome(cell.new.get(id))];
    let mut whys = [&cell.infrastructure, &cell.not_tried, &cell.forged].into_iter();
    json!({
        "title": format!("{} on {}", cell.tests, cell.patch),
        "rows": cell.old.iter().map(row).collect::<Vec<_>>(),
        "why": whys.find_map(Clone::clone),
    })
}
