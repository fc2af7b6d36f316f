//! Candidate fixes: their effects, and which of them are forms of the same fix.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use testwright_tools::outcomes::report::{
    Failure, Outcome as TestOutcome, Place, TestReport, TestResult,
};
use testwright_tools::outcomes::text::short_headline;
use testwright_tools::tools::review_context::SourceLine;

use crate::gate::FixTrial;
use crate::session::Contents;
use testwright_config::hex::hex;

/// Maximum lines between two edits that count as forms of the same fix.
const NEAR: usize = 3;
/// Exceptions that indicate a mistake in the code of a fix.
const MISTAKES: [&str; 8] = [
    "NameError",
    "UnboundLocalError",
    "AttributeError",
    "TypeError",
    "ImportError",
    "ModuleNotFoundError",
    "SyntaxError",
    "IndentationError",
];

/// A trial, with the data to repeat it.
#[derive(Debug, Clone)]
pub(super) struct RecordedTrial {
    pub trial: FixTrial,
    pub edits: Vec<Value>,
    /// Digest of the changed files at the time of the trial.
    pub state: String,
    /// Number of the tool call that made it.
    pub call: usize,
    /// Whether added or changed tests were among those it was tried on.
    pub contributed: bool,
}

/// The toolbox's data on a trial.
#[derive(Deserialize)]
struct TrialData {
    patch: String,
    report: TestReport,
    #[serde(default = "super::run_counts::yes")]
    contributed: bool,
    /// Whether the edit changes no behaviour.
    #[serde(default)]
    placebo: bool,
    #[serde(default)]
    neighbours: Siblings,
}

#[derive(Default, Deserialize)]
struct Siblings {
    #[serde(default)]
    good: usize,
    #[serde(default)]
    failing: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    with_fix: TestResult,
    alone: Option<TestOutcome>,
    without_fix: Option<TestOutcome>,
}

impl Sibling {
    /// Returns whether a test passes without the fix and fails with it, whatever else runs.
    fn is_broken(&self) -> bool {
        let fails = |outcome| {
            matches!(
                outcome,
                TestOutcome::Failed | TestOutcome::Error | TestOutcome::Absent
            )
        };
        self.alone.is_some_and(fails) && self.without_fix.is_some_and(|outcome| !fails(outcome))
    }
}

impl RecordedTrial {
    /// Reads the trials of one call from its answer's data, with the additions of [`add_origin`].
    pub(super) fn read(data: &Value, call: usize) -> Vec<Self> {
        let edits = data["edits"].as_array().cloned().unwrap_or_default();
        let state = data["state"].as_str().unwrap_or_default();
        let number = |edit: &Value| edit["variant"].as_u64().unwrap_or_default();
        let numbers: BTreeSet<u64> = edits.iter().map(number).collect();
        let variants = match data["variants"].as_array() {
            Some(variants) => variants.as_slice(),
            None => std::slice::from_ref(data),
        };
        // The lists differ in length if the edits are unknown.
        let numbers = numbers.into_iter().map(Some).chain(std::iter::repeat(None));
        let trials = variants.iter().zip(numbers).filter_map(|(variant, own)| {
            let data = TrialData::deserialize(variant).ok()?;
            let is_own = |edit: &&Value| own == Some(number(edit));
            Some(RecordedTrial {
                trial: trial(&data),
                edits: edits.iter().filter(is_own).cloned().collect(),
                state: state.to_owned(),
                call,
                contributed: data.contributed,
            })
        });
        trials.collect()
    }
}

/// Adds the data to repeat the trial to those of an answer.
pub(super) fn add_origin(data: &mut Value, edits: Value, state: String) {
    if let Some(data) = data.as_object_mut() {
        data.insert("edits".to_owned(), edits);
        data.insert("state".to_owned(), state.into());
    }
}

fn trial(data: &TrialData) -> FixTrial {
    let failures = data.report.tests.iter().filter_map(|test| {
        let failure = test.failure.as_ref()?;
        Some(format!("{}: {}", test.id, line(failure)))
    });
    let siblings = data.neighbours.failing.iter();
    let broken = siblings.filter(|sibling| sibling.is_broken());
    FixTrial {
        outcomes: (data.report.tests.iter())
            .map(|test| (test.id.clone(), test.outcome))
            .collect(),
        on_submitted_tests: false,
        crash: (data.report.runner_error.as_deref())
            .map(FixTrial::not_tried)
            .or_else(|| data.placebo.then(FixTrial::without_effect))
            .or_else(|| crash(&data.patch, &data.report)),
        failures: failures.collect(),
        breaks: broken
            .map(|sibling| match &sibling.with_fix.failure {
                Some(failure) => format!("{}: {}", sibling.with_fix.id, line(failure)),
                None => sibling.with_fix.id.clone(),
            })
            .collect(),
        existing_run: data.neighbours.good,
        patch: data.patch.clone(),
        origin: None,
    }
}

/// Formats a failure as `EXCEPTION: MESSAGE (FILE:LINE: CODE)`, with the place where it arose.
fn line(failure: &Failure) -> String {
    let message = short_headline(&failure.message, 160);
    match failure.origin() {
        Some(frame) => format!(
            "{}: {message} ({}:{}: {})",
            failure.exception, frame.file, frame.line, frame.code
        ),
        None => format!("{}: {message}", failure.exception),
    }
}

/// Returns the mistake in the edit with which all tests end.
fn crash(patch: &str, report: &TestReport) -> Option<String> {
    let edited = edits(patch);
    let in_edit = |failure: &Failure| {
        let kind = failure.exception.rsplit('.').next().unwrap_or_default();
        let mut frames = failure.frames.iter().rev();
        let frame = frames.find(|frame| frame.place != Place::External);
        MISTAKES.contains(&kind)
            && frame.is_some_and(|frame| {
                let line = frame.line as usize;
                let mut edited = edited.iter();
                edited.any(|edit| edit.path == frame.file && edit.added.contains(&line))
            })
    };
    let failures: Vec<&Failure> = (report.collection_errors.iter())
        .map(|error| &error.failure)
        .chain(report.tests.iter().filter_map(|test| test.failure.as_ref()))
        .collect();
    let mut tests = report.tests.iter();
    let passes = tests.any(|test| test.outcome == TestOutcome::Passed);
    let first = failures.first()?;
    (!passes && failures.iter().all(|failure| in_edit(failure))).then(|| line(first))
}

/// One edit of a patch.
#[derive(Debug, PartialEq)]
struct PatchEdit {
    path: String,
    /// First line of the edit in the old file.
    at: usize,
    /// Number of lines removed from the old file.
    removed: usize,
    /// Lines added in the new file.
    added: std::ops::Range<usize>,
    /// First added line with content.
    first: String,
    /// Whether it adds a function or class, with or without decorators.
    defines: bool,
}

/// Returns the sections of a patch, one for each file.
pub(super) fn sections(patch: &str) -> Vec<Vec<&str>> {
    let mut sections: Vec<Vec<&str>> = Vec::new();
    for line in patch.lines() {
        match sections.last_mut() {
            Some(section) if !line.starts_with("diff --git ") => section.push(line),
            _ => sections.push(vec![line]),
        }
    }
    sections
}

fn edits(patch: &str) -> Vec<PatchEdit> {
    let is_change = |line: &str| line.starts_with(['-', '+']);
    let defines = |code: &&str| {
        let mut words = ["def ", "async def ", "class "].iter();
        words.any(|word| code.starts_with(word))
    };
    let mut patch_edits = Vec::new();
    for section in sections(patch) {
        let head = section.iter().take_while(|line| !line.starts_with("@@"));
        let (head, body) = section.split_at(head.count());
        let named = |prefix: &str| head.iter().find_map(|line| line.strip_prefix(prefix));
        let path = named("--- a/").or_else(|| named("+++ b/"));
        for hunk in body.chunk_by(|_, next| !next.starts_with("@@")) {
            let (mut old, mut new) = (number_after(hunk[0], '-'), number_after(hunk[0], '+'));
            let lines = hunk[1..].iter().copied();
            let lines: Vec<&str> = lines.filter(|line| !line.starts_with('\\')).collect();
            for run in lines.chunk_by(|a, b| is_change(a) == is_change(b)) {
                let added = run.iter().filter_map(|line| line.strip_prefix('+'));
                let added: Vec<&str> = added.map(str::trim_start).collect();
                let removed = run.iter().filter(|line| line.starts_with('-')).count();
                if is_change(run[0]) {
                    let first = added.iter().find(|code| !code.is_empty());
                    patch_edits.push(PatchEdit {
                        path: path.unwrap_or_default().to_owned(),
                        at: old,
                        removed,
                        added: new..new + added.len(),
                        first: first.copied().unwrap_or_default().to_owned(),
                        defines: added.iter().any(defines),
                    });
                }
                old += run.len() - added.len();
                new += run.len() - removed;
            }
        }
    }
    patch_edits
}

/// Returns the number after a sign in the header of a hunk; at least 1.
fn number_after(header: &str, sign: char) -> usize {
    let digits = header.split_once(sign).map_or("", |(_, rest)| rest);
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number = digits[..end.unwrap_or(digits.len())].parse::<usize>();
    number.unwrap_or(1).max(1)
}

/// Returns the lines of the code under test that a patch changes, as numbered without the patch. Added
/// functions may be next to unrelated code, so they count only if the patch changes nothing else.
pub(super) fn places(patch: &str) -> Vec<SourceLine> {
    let edits = edits(patch);
    let is_new = |edit: &&PatchEdit| edit.removed == 0 && edit.defines;
    let (new, changed): (Vec<&PatchEdit>, Vec<_>) = edits.iter().partition(is_new);
    let edits = if changed.is_empty() { new } else { changed };
    let line = |edit: &PatchEdit| match edit.removed {
        // A decorator belongs to the code after it, other code to the code before it.
        0 if edit.first.starts_with('@') => edit.at,
        0 => edit.at.saturating_sub(1).max(1),
        _ => edit.at,
    };
    edits
        .into_iter()
        .map(|edit| SourceLine {
            line: line(edit),
            path: edit.path.clone(),
        })
        .collect()
}

/// Returns the trials without those that a later call revised by editing the same place.
pub(super) fn latest_versions(trials: &[RecordedTrial]) -> Vec<&RecordedTrial> {
    let is_near = |a: &PatchEdit, b: &PatchEdit| {
        a.path == b.path && a.at <= b.at + b.removed + NEAR && b.at <= a.at + a.removed + NEAR
    };
    let is_form = |a: &RecordedTrial, b: &RecordedTrial| {
        let (a, b) = (edits(&a.trial.patch), edits(&b.trial.patch));
        a.iter().any(|a| b.iter().any(|b| is_near(a, b)))
    };
    let mut latest_trials: Vec<&RecordedTrial> = Vec::new();
    for trial in trials {
        latest_trials.retain(|earlier| earlier.call == trial.call || !is_form(earlier, trial));
        latest_trials.push(trial);
    }
    latest_trials
}

pub(super) fn digest(state: &Contents) -> String {
    hex(&Sha256::digest(
        serde_json::to_vec(state).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests;
