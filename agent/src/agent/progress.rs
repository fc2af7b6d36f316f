//! Progress reports of a run, for a display.

use super::RunUsage;

/// One step of a run.
#[derive(Debug, Clone)]
pub struct StepView<'a> {
    /// Number of the step, counted from 1.
    pub step: u32,
    /// `model`, or a tool's name.
    pub action: &'a str,
    /// First line of the arguments or of the answer; the display truncates it.
    pub detail: &'a str,
    /// Usage of the run so far.
    pub spent: &'a RunUsage,
    /// Seconds that the call took; 0 at its start.
    pub seconds: f64,
}

/// Receives the progress of a run, to show it.
pub trait Progress: Send + Sync {
    /// Reports a phase before the loop: `environment`, `sandbox` …
    fn phase(&self, name: &str, detail: &str);
    /// Reports a step in the build of an environment.
    fn build_step(&self, step: &str) {
        self.phase("environment", step);
    }
    /// Reports the kind of a sandbox that has started, and its isolation.
    fn sandbox(&self, _kind: &str, isolation: &str) {
        self.phase("sandbox", isolation);
    }
    /// Reports the start of a model call or tool call.
    fn begins(&self, _view: &StepView<'_>) {}
    /// Reports the end of a call.
    fn ended(&self, _view: &StepView<'_>) {}
    /// Reports the result of a pipeline's stage.
    fn stage(&self, _stage: &str, _result: &str) {}
    /// Reports that a call of the model waits before its next try.
    fn waiting(&self, text: &str) {
        self.note(text);
    }
    /// Reports a note for the user.
    fn note(&self, text: &str);
}

/// Logs notes for the user, and reports nothing else.
pub struct NotesToLog;

impl Progress for NotesToLog {
    fn phase(&self, _: &str, _: &str) {}
    fn note(&self, text: &str) {
        tracing::warn!("{text}");
    }
}
