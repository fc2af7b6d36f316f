//! `try_fix`: changes the code under test and runs tests on the changed code.
//!
//! The host calls it in a copy of the sandbox that is then discarded, so the state of the copy does not matter.

mod fixed_files;
mod sibling_tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contribution;
use super::run_pytest::{deadline, failing};
use crate::outcomes::report::{Failure, Outcome, Place, TestReport, TestResult};
use crate::outcomes::text::{one_line, without_passed};
use crate::python::code_tokens;
use crate::runners;
use crate::tool::{Context, Effect, Reply, Result, Route, Tool, ToolError, refusal};
use crate::workspace::{Workspace, forward};
use fixed_files::FixedFiles;
use sibling_tests::{SiblingTests, TrialScope, run_some};

/// Maximum number of fixes in one call.
const MAX_VARIANTS: usize = 4;

/// A tool that runs tests on changed code under test.
pub struct TryFix;

/// Arguments of `try_fix`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TryFixArgs {
    /// Edits like those of `edit`. Default: the last fix.
    #[serde(default)]
    #[schemars(extend("plain" = true))]
    edits: Vec<FixEdit>,
    /// Add `edits` to the last fix.
    #[serde(default)]
    #[expect(dead_code, reason = "the host puts the edits together")]
    on_top: bool,
    /// Tests to run with it: node ids, files or folders. Default: the tests that you added or changed. The other
    /// tests of the same files run after them.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    tests: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "models read the docs of arguments")]
pub struct FixEdit {
    /// The file.
    path: String,
    /// Text that occurs once; not with `function`.
    #[schemars(extend("plain" = true))]
    old: Option<String>,
    /// The line at which `old` begins, if it occurs more than once.
    #[schemars(extend("unlisted" = true))]
    line: Option<usize>,
    /// `function` or `Class.method`, replaced whole; its decorators stay unless `new` has some.
    #[schemars(extend("plain" = true))]
    function: Option<String>,
    /// The replacement text.
    #[schemars(extend("plain" = true))]
    new: String,
    /// Number of the fix, if several.
    variant: Option<u32>,
}

/// Outcome of a single fix, or of several.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FixTrials {
    #[serde(flatten)]
    single: Option<Trial>,
    /// Trials, if one call tried several fixes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variants: Vec<Trial>,
}

/// One fix and its outcome, also for programs.
#[derive(Debug, Serialize, JsonSchema)]
struct Trial {
    /// The fix as a patch.
    patch: String,
    /// Report on the requested tests.
    report: TestReport,
    /// Whether the requested tests include added or changed ones.
    contributed: bool,
    /// The other tests of the same files.
    neighbours: SiblingTests,
    /// Whether the fix changes only comments, docstrings or layout, so that it says nothing about the tests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    placebo: bool,
    /// Whether a file of the fix had been changed before.
    #[serde(skip)]
    is_mixed: bool,
    /// Requested tests that fail in the same way without the fix.
    #[serde(skip)]
    unchanged: Vec<String>,
}

impl Tool for TryFix {
    type Args = TryFixArgs;
    type Data = FixTrials;
    const NAME: &'static str = "try_fix";
    const TITLE: &'static str = "Try a fix";
    const DESCRIPTION: &'static str = "Run the tests and their neighbours with a fix, in a copy. `edits` as in `edit`; default: the last fix.";
    const EFFECT: Effect = Effect::Reads;
    const ROUTE: Route = Route::Fork;
    const SECONDS: u64 = 300;
    const RUNS_CODE: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let mut variants: BTreeMap<u32, FixedFiles> = BTreeMap::new();
        for edit in &args.edits {
            let files = variants.entry(edit.variant.unwrap_or(1)).or_default();
            files.add(context.workspace, edit)?;
        }
        if variants.is_empty() {
            return Err(ToolError::refused(
                "There is no earlier fix to try again: give its `edits`.",
            ));
        }
        if variants.len() > MAX_VARIANTS {
            return Err(refusal!(
                "At most {MAX_VARIANTS} variants are tried in one call."
            ));
        }
        let test_ids = contribution::named_or_contributed(context.workspace, &args.tests)?;
        let scope = TrialScope::new(&test_ids, !args.tests.is_empty());
        let contributed = args.tests.is_empty()
            || contribution::includes_contributed(context.workspace, &test_ids)?;
        // Check all fixes before trying the first.
        let texts: Vec<_> = (variants.values())
            .map(|files| files.texts().map(|texts| (texts, files.edited_names())))
            .collect::<Result<_, _>>()?;
        let mut trials = Vec::new();
        let parts = u32::try_from(texts.len()).unwrap_or(1);
        let is_single = texts.len() == 1;
        for (texts, edited) in &texts {
            // If there are several, run the neighbours only for the promising ones.
            let parts = if is_single { 1 } else { parts * 2 };
            trials.push(trial(context, &scope, texts, edited, is_single, parts)?);
        }
        let with_neighbours = worth_neighbours(&trials);
        for at in with_neighbours.iter().filter(|_| !is_single) {
            let (texts, edited) = &texts[*at];
            trials[*at] = trial(context, &scope, texts, edited, true, parts)?;
        }
        for trial in &mut trials {
            trial.contributed = contributed;
        }
        let mut ids: Vec<String> = Vec::new();
        for trial in &trials {
            ids.extend(trial.neighbours.failing_alone());
            ids.extend(failing(&trial.report).map(|test| test.id.clone()));
        }
        ids.sort();
        ids.dedup();
        if let Some(without) = run_some(context, &ids, &scope.own, 2)? {
            for trial in &mut trials {
                trial.compare(&without);
            }
        }
        let mut texts: Vec<String> = trials.iter().map(|trial| trial.text(&scope)).collect();
        if is_single {
            let data = FixTrials {
                single: trials.pop(),
                variants: trials,
            };
            return Ok(Reply::new(texts.concat(), data));
        }
        for (variant, text) in variants.keys().zip(&mut texts) {
            text.insert_str(0, &format!("Variant {variant}\n"));
        }
        if with_neighbours.len() < trials.len() {
            let why = match passes(&trials[with_neighbours[0]].report) {
                true => "with which the tests pass",
                false => "since the tests pass with none",
            };
            let numbers: Vec<String> = (variants.keys().enumerate())
                .filter(|(at, _)| with_neighbours.contains(at))
                .map(|(_, number)| number.to_string())
                .collect();
            let plural = if numbers.len() == 1 { "" } else { "s" };
            texts.push(format!(
                "(Neighbours ran with variant{plural} {} only, {why}.)",
                numbers.join(" and ")
            ));
        }
        let data = FixTrials {
            single: None,
            variants: trials,
        };
        Ok(Reply::new(texts.join("\n\n"), data))
    }
}

/// Returns the indices of the fixes for which the neighbours run: those with which the tests pass, or else the first.
fn worth_neighbours(trials: &[Trial]) -> Vec<usize> {
    let passing: Vec<usize> = (trials.iter().enumerate())
        .filter(|(_, trial)| passes(&trial.report))
        .map(|(at, _)| at)
        .collect();
    if passing.is_empty() { vec![0] } else { passing }
}

/// Returns whether every requested test ran and passed, except skipped parameter sets.
fn passes(report: &TestReport) -> bool {
    let mut tests = report.tests.iter();
    let is_passed = |test: &TestResult| test.outcome == Outcome::Passed;
    report.tests.iter().any(is_passed)
        && tests.all(|test| is_passed(test) || test.outcome == Outcome::Skipped)
        && report.collection_errors.is_empty()
        && report.not_found.is_empty()
}

/// Runs the tests with the files of a fix in place, and restores the files.
fn trial(
    context: &mut Context<'_>,
    scope: &TrialScope,
    texts: &[(&PathBuf, String)],
    edited: &[String],
    neighbours: bool,
    parts: u32,
) -> Result<Trial> {
    let before = context.workspace.changes()?;
    let placebo = !(texts.iter()).any(|(path, after)| has_effect(context.workspace, path, after));
    let mut fix = Vec::new();
    let mut was: Vec<(&PathBuf, Option<Vec<u8>>)> = Vec::new();
    for (path, after) in texts {
        was.push((path, context.workspace.read(path).ok()));
        context.workspace.write_text(path, after)?;
        fix.push(forward(path));
    }
    // The patch covers only files of the fix, but includes earlier changes in them.
    let changes = context.workspace.changes()?;
    let of_fix: Vec<_> = changes
        .into_iter()
        .filter(|c| fix.contains(&c.path))
        .collect();
    let patch = context.workspace.patch(&of_fix);
    let trial_deadline = deadline(context, None).min(context.share_of_time(parts));
    let report = runners::run(
        context.workspace.checkout(),
        if neighbours { &scope.run } else { &scope.own },
        &scope.options(edited, trial_deadline),
    )?;
    let (report, mut neighbours) = scope.split(report);
    neighbours.run_alone(context)?;
    for (path, bytes) in was {
        match bytes {
            Some(bytes) => context.workspace.write(path, &bytes)?,
            None => context.workspace.remove(path)?,
        }
    }
    Ok(Trial {
        patch,
        report,
        contributed: true,
        neighbours,
        placebo,
        is_mixed: before.iter().any(|change| fix.contains(&change.path)),
        unchanged: Vec::new(),
    })
}

/// Summarizes the outcomes of the requested tests with an edit that changes no behaviour.
fn verdict_without_effect(report: &TestReport) -> String {
    let mut text = "This edit changes only comments, docstrings or layout, and so no behaviour: it is not a fix, and \
                    says nothing about the tests."
        .to_owned();
    let mut tests = report.tests.iter();
    if tests.any(|test| test.outcome == Outcome::Passed) {
        text.push_str(
            " A test that fails without it and passes with it looks at the code instead of running it.",
        );
    }
    text
}

/// Returns whether a new text of a file changes more than comments, docstrings and layout.
fn has_effect(workspace: &Workspace, path: &Path, after: &str) -> bool {
    if path.extension().is_none_or(|extension| extension != "py") {
        return true;
    }
    let before = workspace.read_text(path).unwrap_or_default();
    let tokens = code_tokens(after);
    // Code that cannot be parsed has no tokens.
    let is_comment = |line: &str| line.trim_start().starts_with('#') || line.trim().is_empty();
    let is_readable = !tokens.is_empty() || after.lines().all(is_comment);
    !is_readable || tokens != code_tokens(&before)
}

impl Trial {
    /// Adds the outcomes without the fix of the tests that fail with it.
    fn compare(&mut self, without: &[TestResult]) {
        self.neighbours.compare(without);
        for test in failing(&self.report) {
            let before = without.iter().find(|before| before.id == test.id);
            if before.is_some_and(|before| fails_alike(before, test)) {
                self.unchanged.push(test.id.clone());
            }
        }
    }

    fn text(&self, scope: &TrialScope) -> String {
        let mut answer = match self.placebo {
            true => verdict_without_effect(&self.report),
            false => scope.verdict(&self.report),
        };
        answer.push_str(&self.neighbours.summary());
        if self.is_mixed {
            answer.push_str(
                "\n(A file of the fix had been changed before; that change was there too.)",
            );
        }
        let mut report = self.report.clone();
        report
            .tests
            .retain(|test| !self.unchanged.contains(&test.id));
        for test in &self.report.tests {
            if let (true, Some(failure)) = (self.unchanged.contains(&test.id), &test.failure) {
                let mut frames = failure.frames.iter();
                let frame = frames.rfind(|frame| frame.place == Place::Test);
                let line = frame.map(|frame| format!(" at line {}", frame.line));
                answer.push_str(&format!(
                    "\n{} fails exactly as without the fix{}: {}",
                    test.id,
                    line.unwrap_or_default(),
                    one_line(failure)
                ));
            }
        }
        let mut outcomes = report.tests.iter().map(|test| test.outcome);
        let is_told = outcomes.all(|outcome| outcome == Outcome::Passed)
            && report.collection_errors.is_empty()
            && report.not_found.is_empty();
        if !is_told {
            answer.push_str("\n\nWith the fix: ");
            answer.push_str(&without_passed(&report));
        }
        answer.push_str(&self.neighbours.details());
        answer
    }
}

/// Returns whether both are the same exception, at the same line of the test; code under test may have moved.
fn fails_alike(a: &TestResult, b: &TestResult) -> bool {
    let (Some(a), Some(b)) = (&a.failure, &b.failure) else {
        return false;
    };
    let lines = |failure: &Failure| -> Vec<(String, u32)> {
        let frames = failure.frames.iter();
        let of_test = frames.filter(|frame| frame.place == Place::Test);
        of_test
            .map(|frame| (frame.file.clone(), frame.line))
            .collect()
    };
    (&a.exception, &a.message, lines(a)) == (&b.exception, &b.message, lines(b))
}
