//! `check_patch`: a matrix on the server, from the request to its end.

use std::time::Duration;

use testwright_evals::document::format::score;

use super::service_tool::{CallError, Effects, Service, ServiceCall, log_failed_cancellation};
use crate::api::{ApiState, matrices};
use crate::matrix::request::MatrixRequest;
use crate::matrix::view::{self, Matrix, PatchVerdict};
use crate::store::{JobStatus, MatrixProgress, StoredMatrix};
use testwright_config::stop_signal::stopped;

/// Interval for polling the store.
const POLL: Duration = Duration::from_millis(500);

pub(super) struct CheckPatch;

#[async_trait::async_trait]
impl Service for CheckPatch {
    type Args = MatrixRequest;
    type Output = Matrix;

    const NAME: &'static str = "check_patch";
    const TITLE: &'static str = "Check code patches";
    const DESCRIPTION: &'static str = "Runs tests on candidate code patches: each test on the old code and with each patch. A patch is kept if a test that fails \
                               on the old code passes with it, and regresses if it also breaks another test of the same files. Only \
                               code counts: a patch's test files, runner settings and bytecode are left out. Patches are ranked; those \
                               that regress or are suspicious come last. Tests are patches, or the tests of runs that \
                               `write_failing_test` started. Cancelling the request cancels the matrix.";
    const EFFECTS: Effects = Effects::Creates;

    async fn run(
        call: &ServiceCall<'_>,
        request: MatrixRequest,
    ) -> Result<(String, Matrix), CallError> {
        let api = &call.parts.api;
        let (stored, _) = matrices::add(api, &call.caller(), &request, None).await?;
        let matrix = tokio::select! {
            // A shutdown cancels the call too, but the matrix must resume.
            biased;
            () = stopped(api.stop.clone()) => {
                let text = format!("the server is shutting down; matrix {} will resume after a restart", stored.id);
                return Err(CallError(text));
            }
            matrix = follow(api, call, &stored) => matrix?,
            () = call.cancelled() => {
                if let Err(problem) = matrices::cancel_matrix(api, stored.id.as_str()).await {
                    log_failed_cancellation(stored.id.as_str(), &problem);
                }
                return Err(CallError::cancelled());
            }
        };
        Ok((text(&matrix), matrix))
    }
}

/// Follows a matrix to its end, and reports progress when more cells are available.
async fn follow(
    api: &ApiState,
    call: &ServiceCall<'_>,
    stored: &StoredMatrix,
) -> Result<Matrix, CallError> {
    let id = stored.id.as_str();
    // Claiming and ending the matrix are steps too, so that progress always grows.
    let all = view::cell_count(&view::input(stored)?).saturating_add(2);
    let mut last_progress = None;
    loop {
        let progress = matrices::find_progress(api, id).await?;
        let MatrixProgress { status, cells } = progress;
        if last_progress != Some(progress) {
            last_progress = Some(progress);
            let finished_cells = u32::try_from(cells).unwrap_or(u32::MAX);
            let part = match status {
                JobStatus::Queued => finished_cells,
                JobStatus::Running => finished_cells.saturating_add(1),
                _ => all,
            };
            let text = format!("matrix {id}: {}", status.as_str());
            call.progress.report_part(&text, part, all);
        }
        if status.has_ended() {
            let ended = matrices::find(api, id).await?;
            return Ok(Matrix::load(&api.store, &ended).await?);
        }
        tokio::time::sleep(POLL).await;
    }
}

fn text(matrix: &Matrix) -> String {
    let mut lines = vec![format!("Matrix {}: {}.", matrix.id, matrix.status.as_str())];
    lines.extend(matrix.message.clone());
    for patch in &matrix.patches {
        let verdict = match patch.verdict {
            PatchVerdict::Waiting => "not tried",
            verdict => verdict.as_str(),
        };
        let mut line = format!("- {}: {verdict}", patch.name);
        if patch.decisive_sets > 0 {
            let (passed, all) = (patch.passed_sets, patch.decisive_sets);
            line.push_str(&format!(", passes {passed} of {all} test sets"));
        }
        if patch.score > 0.0 {
            line.push_str(&format!(", score {}", score(patch.score)));
        }
        lines.push(line);
        // The cells tell why a patch is undecided.
        if patch.verdict != PatchVerdict::Undecided {
            lines.extend(patch.reasons.iter().map(|reason| format!("  {reason}")));
        }
        for cell in matrix.cells.iter().filter(|cell| cell.patch == patch.name) {
            let why = cell.infrastructure.as_ref().or(cell.not_tried.as_ref());
            lines.push(match why {
                Some(why) => format!("  {}: {why}", cell.tests),
                None if cell.passed.is_empty() && cell.failed.is_empty() => {
                    format!("  {}: no test fails on the old code", cell.tests)
                }
                None => format!(
                    "  {}: {} of {} tests that fail on the old code pass",
                    cell.tests,
                    cell.passed.len(),
                    cell.passed.len() + cell.failed.len()
                ),
            });
        }
    }
    if !matrix.ranking.is_empty() {
        lines.push(format!("Ranking: {}", matrix.ranking.join(", ")));
    }
    if !matrix.ties.is_empty() {
        lines.push(format!("Tied for first place: {}", matrix.ties.join(", ")));
    }
    lines.join("\n")
}
