//! Notes about what a build left out. They become part of the error if the build fails later.

use super::build::Build;
use super::failure_hints;
use super::steps::StepOutput;
use crate::error::SandboxError;

/// Maximum bytes of a log's end that explain a failure.
const MAX_TAIL_LEN: usize = 64 << 10;

/// Returns the note about a requirement that could not be installed, with the reason.
pub(super) fn omission(requirement: &str, printed: &StepOutput) -> String {
    let refused = printed.text.lines().rev().find_map(|line| {
        let rest = line.strip_prefix("network: ")?;
        Some(format!(
            "{} was refused",
            rest.split_once(" was refused")?.0
        ))
    });
    let reason = refused.or_else(|| failure_hints::decisive_line(&printed.text));
    let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    format!("requirement {requirement} could not be installed and was omitted{reason}")
}

impl Build<'_> {
    /// Adds what was left out to the error of a later step, and advice if the failure follows from it.
    pub(super) fn with_omissions(&self, mut error: SandboxError) -> SandboxError {
        let mut notes = self.findings.omissions();
        let mut seen = std::collections::BTreeSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        if notes.is_empty() || error.log.is_none() {
            return error;
        }
        let text = error.log.as_ref().and_then(|log| std::fs::read(log).ok());
        let text = text.unwrap_or_default();
        let tail = &text[text.len().saturating_sub(MAX_TAIL_LEN)..];
        let tail = String::from_utf8_lossy(tail);
        let step = tail.rsplit("\n$ ").next().unwrap_or(&tail);
        let advice = failure_hints::hint_for_omission(&error.message, &notes)
            .or_else(|| failure_hints::hint_for_omission(step, &notes));
        if let Some(advice) = advice {
            error.hint = Some(advice);
        }
        for note in notes {
            error.message.push_str(&format!("\n  note: {note}"));
        }
        error
    }
}
