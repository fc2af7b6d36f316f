//! Observes runs through the events that they store.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use super::Telemetry;
use super::traces::RunSpans;
use crate::store::{JobId, JobStatus, StoredRun, now};
use testwright_agent::trajectory::Event;
use testwright_config::lock::lock;

/// Observes one attempt; if it is dropped without an end, the run counts as returned to the queue.
pub(crate) struct RunObserver {
    telemetry: Arc<Telemetry>,
    run: JobId,
    attempt: i64,
    model: String,
    begun: Instant,
    spans: Option<RunSpans>,
    ending: Mutex<Option<JobStatus>>,
}

impl RunObserver {
    pub(crate) fn begin(telemetry: Arc<Telemetry>, run: &StoredRun) -> Self {
        let waited = (run.attempt == 1).then(|| (now() - run.created_at).max(0) as f64 / 1000.0);
        telemetry.metrics.run_begun(waited);
        tracing::info!(run = %run.id, attempt = run.attempt, approach = run.approach, model = run.model, "an attempt at a run begins");
        RunObserver {
            spans: telemetry.traces.as_ref().map(|traces| traces.run(run)),
            telemetry,
            run: run.id.clone(),
            attempt: run.attempt,
            model: run.model.clone(),
            begun: Instant::now(),
            ending: Mutex::new(None),
        }
    }

    /// Records an event that this attempt stored; events of earlier attempts are not counted again.
    pub(crate) fn stored(&self, event: &Event) {
        if let Some(spans) = &self.spans {
            spans.stored(event);
        }
        let metrics = &self.telemetry.metrics;
        match event {
            Event::Reply { reply, seconds, .. } => {
                metrics.model_replied(&self.model, &reply.usage, *seconds);
            }
            Event::Answer(answer) => {
                metrics.tool_answered(&answer.tool, answer.refused, answer.seconds);
            }
            _ => {}
        }
    }

    pub(crate) fn ended(&self, status: JobStatus) {
        *lock(&self.ending) = Some(status);
    }
}

impl Drop for RunObserver {
    fn drop(&mut self) {
        let status = lock(&self.ending).unwrap_or(JobStatus::Queued);
        let seconds = self.begun.elapsed().as_secs_f64();
        if let Some(spans) = &self.spans {
            spans.end(status);
        }
        let metrics = &self.telemetry.metrics;
        metrics.run_ended(status.as_str(), status.has_ended(), seconds);
        tracing::info!(run = %self.run, attempt = self.attempt, status = status.as_str(), seconds, "an attempt at a run ends");
    }
}
