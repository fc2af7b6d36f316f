//! Notes about what a build left out. They become part of the error if the build fails later.

use super::build::Build;
use super::build_isolation::failed_packages;
use super::failure_hints;
use super::requirements::name;
use super::steps::StepOutput;
use crate::error::SandboxError;

/// Maximum bytes of a log's end that explain a failure.
const MAX_TAIL_LEN: usize = 64 << 10;

/// Maximum characters of a line that a note quotes.
const MAX_LINE_LEN: usize = 200;

/// Returns the note about a requirement that could not be installed, with the reason.
pub(super) fn omission(requirement: &str, printed: &StepOutput) -> String {
    let reason = reason(&printed.text);
    format!("requirement {requirement} could not be installed and was omitted{reason}")
}

/// Returns the note about a requirement that was installed although it contradicts others, with the reason.
pub(super) fn contradiction(requirement: &str, printed: &StepOutput) -> String {
    let reason = reason(&printed.text);
    format!("requirement {requirement} contradicts others and was installed all the same{reason}")
}

/// Returns the reason for a failed installation in parentheses, after a space. Without a known reason it is empty.
pub(super) fn reason(output: &str) -> String {
    let refused = output.lines().rev().find_map(|line| {
        let rest = line.strip_prefix("network: ")?;
        Some(format!(
            "{} was refused",
            rest.split_once(" was refused")?.0
        ))
    });
    let reason = refused
        .or_else(|| failure_hints::decisive_line(output))
        .or_else(|| last_build_line(output));
    reason.map_or(String::new(), |reason| format!(" ({reason})"))
}

/// Returns the last line that a build printed before it failed, which can explain the failure in plain words.
fn last_build_line(output: &str) -> Option<String> {
    let (_, printed) = output.rsplit_once("Call to `")?;
    let is_message = |line: &&str| {
        let is_mark = line.starts_with('[') && line.ends_with(']');
        !line.is_empty() && !is_mark && !line.starts_with("hint: ")
    };
    let lines = printed.lines().skip(1).map(str::trim);
    let line = lines.filter(is_message).last()?;
    Some(line.chars().take(MAX_LINE_LEN).collect())
}

/// Signs of a line about an error in the output of uv and git.
const ERROR_SIGNS: [&str; 4] = ["error:", "cause:", "fatal:", "Failed to"];

/// Splits requirements into those that uv could not build or fetch, according to its output, and the others. Returns
/// `None` if that does not help: none of them or pytest failed, or nothing is left.
pub(super) fn split_failed(
    lines: &[String],
    printed: &StepOutput,
) -> Option<(Vec<String>, Vec<String>)> {
    let failed = failed_packages(&printed.text);
    let is_failed =
        |line: &String| failed.contains(&name(line)) || has_failed_address(line, &printed.text);
    let (omitted, rest): (Vec<String>, Vec<String>) = lines.iter().cloned().partition(is_failed);
    let lacks_pytest =
        failed.contains("pytest") || omitted.iter().any(|line| name(line) == "pytest");
    let is_useless = omitted.is_empty() || rest.is_empty() || lacks_pytest;
    (!is_useless).then_some((omitted, rest))
}

/// Returns whether an error in the output names the address of a requirement, as in `git+https://host/name.git@main`.
fn has_failed_address(requirement: &str, output: &str) -> bool {
    let Some((_, address)) = requirement.split_once("://") else {
        return false;
    };
    let end = address.find(['#', ' ', ';']).unwrap_or(address.len());
    let address = &address[..end];
    // An `@` in the path precedes a revision, and one before the host follows a user.
    let address = match address.rsplit_once('@') {
        Some((before, _)) if before.contains('/') => before,
        _ => address,
    };
    let is_error = |line: &&str| ERROR_SIGNS.iter().any(|sign| line.contains(sign));
    let mut errors = output.lines().filter(is_error);
    let address = format!("://{address}");
    let is_end = |rest: &str| {
        let rest = rest.strip_prefix(".git").unwrap_or(rest);
        !rest.starts_with(|c: char| c.is_alphanumeric() || "-_.".contains(c))
    };
    errors.any(|line| line.split(address.as_str()).skip(1).any(is_end))
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

#[cfg(test)]
mod tests;
