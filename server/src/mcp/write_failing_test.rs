//! `write_failing_test`: a run on the server, from the request to its end.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

use super::event_text::EventText;
use super::service_tool::{CallError, Effects, Service, ServiceCall, log_failed_cancellation};
use crate::api::{ApiState, events, runs};
use crate::request::RunRequest;
use crate::store::{JobId, JobStatus, StoredRun};
use testwright_agent::agent::Outcome;
use testwright_agent::approaches::{self, ModelKind};
use testwright_agent::gate;
use testwright_agent::trajectory::Event;
use testwright_config::stop_signal::stopped;

/// Interval for polling the store, because workers in other processes send no notifications.
const POLL: Duration = Duration::from_secs(1);
/// Number of events read from the store at a time.
const PAGE: u32 = 100;

pub(super) struct WriteFailingTest;

/// The result of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunResult {
    /// Id of the run on the server.
    run: String,
    status: WrittenStatus,
    /// Title of the issue.
    title: String,
    /// Test, as a patch for `git apply`; for a refused test, the submitted patch.
    patch: Option<String>,
    /// Evidence for the test.
    evidence: Option<Value>,
    /// Reason why there is no test, or the problems that the gate found.
    reason: Option<String>,
    /// Advice on how to get a test, if there is any.
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WrittenStatus {
    /// The gate accepted the test.
    Accepted,
    /// The gate refused the submitted test.
    Refused,
    /// The run ended without a test: it reached a limit, or the approach produced none.
    Nothing,
    /// The machine, the model service or the address of the issue failed.
    Infrastructure,
    Cancelled,
}

#[async_trait::async_trait]
impl Service for WriteFailingTest {
    type Args = RunRequest;
    type Output = RunResult;

    const NAME: &'static str = "write_failing_test";
    const TITLE: &'static str = "Write a failing test";
    const DESCRIPTION: &'static str = "Writes a test that fails on the old code of a Python repository for the reason stated in an issue, and returns the test \
                               as a patch, with its evidence. A call takes minutes and reports progress. Cancelling the request cancels the \
                               run.";
    const EFFECTS: Effects = Effects::Creates;

    async fn run(
        call: &ServiceCall<'_>,
        request: RunRequest,
    ) -> Result<(String, RunResult), CallError> {
        let api = &call.parts.api;
        let (run, _) = runs::add(api, &call.caller(), &request, None).await?;
        run_to_end(call, run).await
    }
}

/// Follows a queued run to its end, and returns its result.
pub(super) async fn run_to_end(
    call: &ServiceCall<'_>,
    run: StoredRun,
) -> Result<(String, RunResult), CallError> {
    let api = &call.parts.api;
    call.progress.report(&format!("run {}: queued", run.id));
    let run = tokio::select! {
        // A shutdown cancels the call too, but the run must resume.
        biased;
        () = stopped(api.stop.clone()) => {
            return Err(CallError(format!("the server is shutting down; run {} will resume after a restart", run.id)));
        }
        ended = follow(api, call, &run.id) => ended?,
        () = call.cancelled() => {
            if let Err(problem) = runs::cancel_run(api, run.id.as_str()).await {
                log_failed_cancellation(run.id.as_str(), &problem);
            }
            return Err(CallError::cancelled());
        }
    };
    let outcome: Option<Outcome> = serde_json::from_value(run.record_value()).ok();
    let key_variable = &api.settings.model.api_key_env;
    let written = written(&run, outcome.as_ref(), key_variable);
    Ok((text(&written, outcome.as_ref()), written))
}

/// Follows a run to its end, and reports its events as progress.
async fn follow(
    api: &ApiState,
    call: &ServiceCall<'_>,
    id: &JobId,
) -> Result<StoredRun, CallError> {
    let mut changes = api.changes.subscribe();
    let (mut last, mut status) = (0, JobStatus::Queued);
    let mut event_text = EventText::default();
    loop {
        // Read before the events: all events of an ended run were stored before it ended.
        let run = api.store.run(id).await?;
        let run = run.ok_or_else(|| CallError("the run was deleted".to_owned()))?;
        if run.status != status {
            status = run.status;
            call.progress
                .report(&format!("run {id}: {}", status.as_str()));
        }
        let page = api.store.events(id, last, PAGE).await?;
        for event in &page {
            last = event.number;
            // A newer worker may store events that this version does not know.
            if let Ok(event) = serde_json::from_str::<Event>(&event.line) {
                let lines = event_text.describe(&event);
                lines.iter().for_each(|line| call.progress.report(line));
            }
        }
        if !page.is_empty() {
            continue;
        }
        if run.status.has_ended() {
            return Ok(run);
        }
        tokio::select! {
            () = events::changed(&mut changes, id) => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Returns advice on how to get a test from the next run.
fn hint(run: &StoredRun, key_variable: &str) -> Option<String> {
    let approach = approaches::find(run.approach.split(':').next().unwrap_or_default());
    let by_rules = approach.is_some_and(|a| matches!(a.model, ModelKind::Rules(_)));
    match run.record_value()["hint"].as_str() {
        Some(hint) => Some(hint.to_owned()),
        None if by_rules && run.status == JobStatus::Nothing => Some(format!(
            "the approach `{}` uses fixed rules and no language model: set {key_variable} or model.base-url for testwright, \
             then pass `model`",
            run.approach
        )),
        None => None,
    }
}

fn written(run: &StoredRun, outcome: Option<&Outcome>, key_variable: &str) -> RunResult {
    let mut record = run.record_value();
    let evidence = record.get_mut("evidence").map(Value::take);
    RunResult {
        run: run.id.to_string(),
        status: match run.status {
            JobStatus::Accepted => WrittenStatus::Accepted,
            JobStatus::Refused => WrittenStatus::Refused,
            JobStatus::Nothing => WrittenStatus::Nothing,
            JobStatus::Cancelled => WrittenStatus::Cancelled,
            JobStatus::Queued
            | JobStatus::Running
            | JobStatus::Done
            | JobStatus::Infrastructure => WrittenStatus::Infrastructure,
        },
        title: run.title.clone(),
        patch: run.patch.clone(),
        evidence: evidence.filter(|evidence| !evidence.is_null()),
        reason: outcome
            .filter(|_| run.status != JobStatus::Accepted)
            .map(Outcome::summary),
        hint: hint(run, key_variable),
    }
}

fn text(written: &RunResult, outcome: Option<&Outcome>) -> String {
    let mut text = match (written.status, &written.reason) {
        (WrittenStatus::Accepted, _) => format!("A test was accepted (run {}).", written.run),
        (_, Some(reason)) => format!("No test was accepted (run {}): {reason}", written.run),
        (_, None) => format!("No test was accepted (run {}).", written.run),
    };
    if let Some(hint) = &written.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    if let Some(Outcome::Accepted { evidence, .. }) = outcome {
        for (name, value) in gate::evidence_rows(evidence) {
            text.push_str(&format!("\n{name}: {value}"));
        }
    }
    if let Some(patch) = &written.patch {
        text.push_str(&format!("\n\n{patch}"));
    }
    text
}
