//! What a run reports while it goes on, for a display.

use super::RunUsage;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct StepView<'a> {
    pub step: u32,
    /// `model`, or a tool's name.
    pub what: &'a str,
    /// First line of the arguments or of the answer, cut by the display.
    pub detail: &'a str,
    pub spent: &'a RunUsage,
    pub seconds: f64,
}

pub trait Progress: Send + Sync {
    /// A phase before the loop: `environment`, `sandbox` …
    fn phase(&self, name: &str, detail: &str);
    /// A model call or a tool call begins.
    fn begins(&self, view: &StepView<'_>);
    /// It is over.
    fn ended(&self, view: &StepView<'_>);
    /// What a stage of a pipeline came to.
    fn stage(&self, stage: &str, result: &str);
    /// Something that the user should know.
    fn note(&self, text: &str);
}

/// Tells the log what the user should know, and nothing else.
pub struct NotesToLog;

impl Progress for NotesToLog {
    fn phase(&self, _: &str, _: &str) {}
    fn begins(&self, _: &StepView<'_>) {}
    fn ended(&self, _: &StepView<'_>) {}
    fn stage(&self, _: &str, _: &str) {}
    fn note(&self, text: &str) {
        tracing::warn!("{text}");
    }
}
