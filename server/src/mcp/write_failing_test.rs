//! `write_failing_test`: a run of the daemon, from a request to its end.

use rmcp::model::{CallToolResult, Tool};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool, answer};
use crate::api::{ApiState, events, runs};
use crate::request::RunRequest;
use crate::store::{JobStatus, RunId, StoredRun};
use testwright_agent::agent::Outcome;
use testwright_agent::gate;
use testwright_agent::trajectory::{Event, entries};
use testwright_config::stop_signal::stopped;

/// Workers of other processes tell nothing: the store is asked so often.
const POLL: Duration = Duration::from_secs(1);
/// Events that are read at one time.
const PAGE: u32 = 100;

pub struct WriteFailingTest;

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    /// Id of the run, under which the daemon keeps it.
    run: String,
    status: WrittenStatus,
    /// Title of the issue.
    title: String,
    /// The test, as a patch for `git apply`; of a refused one, what was handed in.
    patch: Option<String>,
    /// What speaks for the test.
    evidence: Option<Value>,
    /// Why there is no test, or what the gate found.
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WrittenStatus {
    /// There is a test.
    Accepted,
    /// A test was handed in, and the gate found fault.
    Refused,
    /// No test within the limits, or the approach had none.
    Nothing,
    /// The machine, the model service or the address failed.
    Infrastructure,
    Cancelled,
}

#[async_trait::async_trait]
impl ServiceTool for WriteFailingTest {
    fn name(&self) -> &'static str {
        "write_failing_test"
    }

    fn tool(&self) -> Tool {
        Tool::new(
            self.name(),
            "Writes a test that fails on the old code of a Python repository for the reason that an issue states, and answers \
             with the test as a patch and what speaks for it. It takes minutes; progress says what is done. Taking the request \
             back ends the run.",
            serde_json::Map::new(),
        )
        .with_input_schema::<RunRequest>()
        .with_output_schema::<Written>()
        .with_title("Write a failing test")
        .with_annotations(Effects::CREATES.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let request: RunRequest = call.arguments()?;
        let api = &call.parts.api;
        let (run, _) = runs::add(api, &call.caller(), &request, None).await?;
        call.progress.tell(&format!("run {}: queued", run.id));
        let run = tokio::select! {
            ended = follow(api, call, &run.id) => ended?,
            () = call.cancelled() => {
                // It may have ended meanwhile.
                let _ = runs::end(api, run.id.as_str()).await;
                return Err(CallError::cancelled());
            }
            () = stopped(api.stop.clone()) => {
                return Err(CallError(format!("the server ends; run {} goes on when it is there again", run.id)));
            }
        };
        let outcome: Option<Outcome> = serde_json::from_value(run.record_value()).ok();
        let written = written(&run, outcome.as_ref());
        answer(&text(&written, outcome.as_ref()), &written)
    }
}

/// The run once it has ended; what it does until then is told.
async fn follow(
    api: &ApiState,
    call: &ServiceCall<'_>,
    id: &RunId,
) -> Result<StoredRun, CallError> {
    let mut changes = api.changes.subscribe();
    let (mut last, mut status) = (0, JobStatus::Queued);
    loop {
        // Asked first: what an ended run has, it had before it ended.
        let run = api.store.run(id).await?;
        let run = run.ok_or_else(|| CallError("the run is gone".to_owned()))?;
        if run.status != status {
            status = run.status;
            call.progress
                .tell(&format!("run {id}: {}", status.as_str()));
        }
        let page = api.store.events(id, last, PAGE).await?;
        for event in &page {
            last = event.number;
            tell(call, &event.line);
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

fn tell(call: &ServiceCall<'_>, line: &str) {
    // Of a newer worker, perhaps.
    let Ok(event) = serde_json::from_str::<Event>(line) else {
        return;
    };
    for entry in entries(std::slice::from_ref(&event)) {
        call.progress.tell(&entry.title);
    }
}

fn written(run: &StoredRun, outcome: Option<&Outcome>) -> Written {
    let mut record = run.record_value();
    let evidence = record.get_mut("evidence").map(Value::take);
    Written {
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
    }
}

fn text(written: &Written, outcome: Option<&Outcome>) -> String {
    let mut text = match (written.status, &written.reason) {
        (WrittenStatus::Accepted, _) => format!("A test was accepted (run {}).", written.run),
        (_, Some(reason)) => format!("No test was accepted (run {}): {reason}", written.run),
        (_, None) => format!("No test was accepted (run {}).", written.run),
    };
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
