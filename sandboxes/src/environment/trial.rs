//! A trial of a few tests from all over the repository, and its verdict: an environment works if tests pass in it.

use std::collections::BTreeMap;

use super::Environment;
use super::build::Build;
use super::smoke_test::{self, Request, SmokeTestReport};
use super::steps::{self, Steps};
use super::{failure_hints, missing, project_tests};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe;
use crate::repository::Tree;
use crate::sandbox::{Result, Sandbox};

/// Number of files to try first, and again if none of those can be collected.
const FILES: usize = 8;
/// Number of tests to run of each file.
const PER_FILE: usize = 2;
/// Maximum seconds for running the tests.
const SECONDS: u64 = 5;
/// Maximum seconds for collecting them, if the build took long.
const MAX_COLLECT_SECONDS: u64 = 60;
/// Share of the build's time that collecting may take.
const COLLECT_SHARE: f64 = 0.2;
/// Files, tests of each file and seconds of the second trial, before an environment is rejected.
const SECOND_TRIAL: (usize, usize, u64) = (24, 4, 30);

const STEP: &str = "try some tests";

/// Which tests a trial runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialKind {
    /// A few tests, in an environment that nothing is known about.
    First,
    /// A repetition with the same tests, after something was added.
    Repeated,
    /// More tests of other files.
    OtherFiles,
}

/// One trial in a sandbox.
pub(super) struct Trial<'a> {
    pub build: &'a Build<'a>,
    pub sandbox: &'a dyn Sandbox,
    pub environment: &'a Environment,
    pub tree: &'a Tree,
    /// Interpreter in the sandbox.
    pub python: String,
}

impl Trial<'_> {
    /// Runs the trial. Returns `None` if it times out, because slow tests do not make an environment invalid.
    pub(super) async fn run(&self, kind: TrialKind) -> Result<Option<SmokeTestReport>> {
        let build = self.build;
        let steps = Steps {
            sandbox: self.sandbox,
            log: build.log,
            progress: build.progress,
            env: &self.environment.env,
            deadline: build.settings.trial_deadline,
            egress: None,
        };
        let tried = match kind {
            TrialKind::OtherFiles => self.try_others(&steps).await,
            TrialKind::First | TrialKind::Repeated => self.try_files(&steps).await,
        };
        match tried {
            Ok(report) => Ok(Some(report)),
            Err(error) if error.kind == ErrorKind::Build => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the seconds that collecting may take: tests of large packages take as long to import as to install.
    fn collect_seconds(&self) -> u64 {
        let share = self.build.begun.elapsed().mul_f64(COLLECT_SHARE);
        share.as_secs().clamp(SECONDS, MAX_COLLECT_SECONDS)
    }

    fn request(&self, files: Vec<String>, per_file: usize, seconds: u64) -> Request {
        let mut options = self.build.recipe.runner.options.clone();
        // Existing bytecode can then be used.
        options.push("--assert=plain".to_owned());
        Request {
            files,
            options,
            per_file,
            seconds: Some(seconds),
            collect_seconds: Some(self.collect_seconds().max(seconds)),
            ..Request::default()
        }
    }

    /// Returns the repository's own test files. Those in submodules belong to other projects.
    fn test_files(&self) -> Result<Vec<String>> {
        let all = recipe::test_files(self.tree, &self.build.recipe.projects)?;
        let modules = self.tree.text(".gitmodules")?.unwrap_or_default();
        let folders: Vec<String> = modules
            .lines()
            .filter_map(|line| line.trim().strip_prefix("path")?.trim().strip_prefix('='))
            .map(|path| format!("{}/", path.trim()))
            .collect();
        let is_own = |file: &&String| !folders.iter().any(|folder| file.starts_with(folder));
        let own: Vec<String> = all.iter().filter(is_own).cloned().collect();
        Ok(if own.is_empty() { all } else { own })
    }

    async fn try_files(&self, steps: &Steps<'_>) -> Result<SmokeTestReport> {
        let all = self.test_files()?;
        let per_file = match self.build.plan.guess.untried {
            true => PER_FILE,
            false => 0,
        };
        let request = |files| self.request(files, per_file, SECONDS);
        let mut some = request(spread(&all, FILES, 0));
        // Only a detected recipe is completed with missing packages.
        if self.build.plan.guess.any {
            some.fixtures = missing::fixtures();
            some.scanned.clone_from(&all);
        }
        let report = self.run_tests(steps, STEP, &some).await?;
        if !report.collected.is_empty() || report.stopped || all.len() < 2 {
            return Ok(report);
        }
        // A single file can end the process, and some files may contain no tests.
        let crashed = !report.ended && report.printed.code > 128;
        let others = match crashed {
            true => spread(&all, FILES / 2, 0),
            false => spread(&all, FILES, 1),
        };
        let others: Vec<Vec<String>> = match crashed {
            true => others.into_iter().map(|file| vec![file]).collect(),
            false => vec![others],
        };
        let mut broken = report.broken;
        for files in others.into_iter().filter(|files| !files.is_empty()) {
            let step = format!("{STEP} of {}", files[0]);
            let other = self.run_tests(steps, &step, &request(files)).await?;
            broken.extend(other.broken);
            if !other.collected.is_empty() {
                return Ok(SmokeTestReport {
                    collected: other.collected,
                    tests: other.tests,
                    broken,
                    ..report
                });
            }
        }
        Ok(SmokeTestReport { broken, ..report })
    }

    async fn try_others(&self, steps: &Steps<'_>) -> Result<SmokeTestReport> {
        let all = self.test_files()?;
        let (count, per_file, seconds) = SECOND_TRIAL;
        let others = spread(&all, count, all.len() / count / 2);
        let step = format!("{STEP} of other files");
        let request = self.request(others, per_file, seconds);
        self.run_tests(steps, &step, &request).await
    }

    async fn run_tests(
        &self,
        steps: &Steps<'_>,
        step: &str,
        request: &Request,
    ) -> Result<SmokeTestReport> {
        let projects = &self.build.recipe.projects;
        project_tests::run(steps, step, &self.python, request, projects, self.tree).await
    }
}

/// Returns whether the time was up before the first test had ended.
pub(super) fn lacks_results(report: &SmokeTestReport) -> bool {
    report.stopped && report.tests.is_empty()
}

/// Returns whether the time was up while files were collected, and none of those before could be.
fn lacks_good_files(report: &SmokeTestReport) -> bool {
    report.stopped && report.good_files == 0 && !report.broken.is_empty()
}

/// Returns whether tests ran and none of them passed. Skipped tests say nothing.
pub(super) fn is_rejected(report: &SmokeTestReport) -> bool {
    let has = |outcomes: &[&str]| {
        let is_one = |test: &smoke_test::Test| outcomes.contains(&test.outcome.as_str());
        report.tests.iter().any(is_one)
    };
    has(&["failed", "error"]) && !has(&["passed", "xfailed"])
}

/// Returns whether a conftest, a fixture or a plugin ended the run before any test, for example because a server is
/// missing.
pub(super) fn is_aborted(report: &SmokeTestReport) -> bool {
    let is_collected = !report.collected.is_empty() && report.tests.is_empty();
    is_collected && report.ended && !report.stopped && matches!(report.printed.code, 2..=4)
}

impl Build<'_> {
    /// Returns notes on a trial, or an error if nothing can be collected or no test passes.
    pub(super) fn assess_report(&self, report: &SmokeTestReport) -> Result<Vec<String>> {
        if is_rejected(report) {
            return Err(self.no_test_passes(report));
        }
        if is_aborted(report) {
            return Err(steps::failed(self.log, STEP, &report.printed_lines()));
        }
        let code = report.printed.code;
        if !report.collected.is_empty() {
            if !report.ended && !report.stopped && code > 128 {
                return Ok(vec![format!(
                    "some tests crash the process that runs them (exit code {code})"
                )]);
            }
            let notes = [broken_files(report), mostly_failing(report)];
            let notes = notes.into_iter().flatten();
            return Ok(notes
                .map(|(note, text)| self.with_advice(note, &text))
                .collect());
        }
        if report.stopped && !lacks_good_files(report) {
            let seconds = report.limit.unwrap_or(SECONDS);
            let place = match report.place.as_str() {
                "" => String::new(),
                place => format!(": {place} was still running"),
            };
            return Ok(vec![format!(
                "no test file was collected within {seconds} s, so none was tried{place}"
            )]);
        }
        // pytest exits with code 5 if it finds no tests.
        if code == 5 || (report.ended && report.broken.is_empty() && code == 0) {
            let note = "pytest found no tests in the test files that were tried";
            return Ok(vec![note.to_owned()]);
        }
        let mut printed = report.printed_lines();
        if let Some(broken) = report.broken.last() {
            printed.text = format!("{}\n{}: {}", printed.text, broken.file, broken.text);
        }
        Err(steps::failed(self.log, STEP, &printed))
    }

    /// Adds advice on the error in a text to a note.
    fn with_advice(&self, note: String, text: &str) -> String {
        let advice = failure_hints::hint_for_omission(text, &self.findings.omissions())
            .or_else(|| failure_hints::hint(text));
        match advice {
            Some(advice) => format!("{note}; {advice}"),
            None => note,
        }
    }

    fn no_test_passes(&self, report: &SmokeTestReport) -> SandboxError {
        let failures = failures(report);
        let total = failures.values().map(|(count, ..)| count).sum::<usize>();
        let commonest = failures.iter().max_by_key(|(_, (count, ..))| *count);
        let log = self.log.path.display();
        let (mut message, mut hint) = ("none of the tests that were tried passes".to_owned(), None);
        if let Some((reason, (count, asked_by, text))) = commonest {
            message.push_str(&format!(
                "\n    {count} of {total} end with this error, the first is {asked_by}:\n    {reason}"
            ));
            hint = failure_hints::hint(text);
        }
        message.push_str(&format!("\n  full log: {log}"));
        SandboxError {
            log: Some(self.log.path.clone()),
            hint,
            ..SandboxError::new(ErrorKind::Build, message)
        }
    }
}

/// Returns the failures by reason: how many tests and files have it, the first of them, and its text.
fn failures(report: &SmokeTestReport) -> BTreeMap<String, (usize, String, String)> {
    let mut all: BTreeMap<String, (usize, String, String)> = BTreeMap::new();
    for (asked_by, text) in report.complaints() {
        let entry = all
            .entry(smoke_test::reason(text))
            .or_insert_with(|| (0, asked_by.to_owned(), text.to_owned()));
        entry.0 += 1;
    }
    all
}

/// Describes an environment in which most of the tried tests fail, with the output of one of them.
fn mostly_failing(report: &SmokeTestReport) -> Option<(String, String)> {
    let failing = |outcome: &str| outcome == "failed" || outcome == "error";
    let ran = report.tests.iter().filter(|test| test.outcome != "skipped");
    let (bad, good): (Vec<_>, Vec<_>) = ran.partition(|test| failing(&test.outcome));
    if bad.len() < 4 || bad.len() <= good.len() {
        return None;
    }
    let failures = failures(report).into_iter();
    let (reason, (count, _, text)) = failures.max_by_key(|(_, (count, ..))| *count)?;
    let note = format!(
        "of {} tests that were tried, {} fail, {count} of them with: {reason}",
        bad.len() + good.len(),
        bad.len()
    );
    Some((note, text))
}

/// Returns `count` of `all`, evenly spread, starting at position `shift`.
fn spread(all: &[String], count: usize, shift: usize) -> Vec<String> {
    let step = (all.len() / count).max(1);
    let chosen = all.iter().skip(shift).step_by(step).take(count);
    chosen.cloned().collect()
}

/// Describes the files that cannot be collected, with the reason for the first and its output.
fn broken_files(report: &SmokeTestReport) -> Option<(String, String)> {
    let (first, rest) = report.broken.split_first()?;
    let tried = report.collected.len() + report.broken.len();
    let files = match rest.len() {
        0 => first.file.clone(),
        1 => format!("{} and {}", first.file, rest[0].file),
        more => format!("{} and {more} others", first.file),
    };
    let reason = smoke_test::reason(&first.text);
    let note = format!(
        "of {tried} test files that were tried, {} cannot be collected: {files} ({reason})",
        report.broken.len()
    );
    Some((note, first.text.clone()))
}

#[cfg(test)]
mod tests;
