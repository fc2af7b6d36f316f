//! A trial run of some tests of a repository: which ones work, and what the others lack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::before_tests::FailedCommand;
use super::failure_hints;
use super::steps::{StepOutput, Steps, text};
use crate::sandbox::{Command, Result};

const SCRIPT: &str = include_str!("smoke_test.py");

/// Name of the script, as seen in the tracebacks of files that it interrupts.
const SCRIPT_NAME: &str = "testwright-smoke-test.py";

/// Prefix of the lines that the script prints for testwright.
const RESULT_PREFIX: &str = "testwright-smoke-test: ";

/// Message of pytest when it skips an async test.
pub(super) const NO_ASYNC_PLUGIN: &str = "no async plugin installed";

/// A request to `smoke_test.py`.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Request {
    /// Folder to run in, relative to the workspace.
    #[serde(skip)]
    pub folder: String,
    /// Files to collect. If empty, pytest's configuration decides.
    pub files: Vec<String>,
    pub options: Vec<String>,
    /// Maximum tests to run of each file.
    pub per_file: usize,
    /// Number of tests to run of all files. If set, it replaces `per_file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    pub seed: u64,
    /// Seconds after which the whole run ends, if tests have no limit of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Seconds after which collecting ends. Default: `seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect_seconds: Option<u64>,
    /// Maximum seconds for one test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_seconds: Option<u64>,
    /// Fixtures to search for in the `scanned` files.
    pub fixtures: Vec<&'static str>,
    /// Files to read but not run.
    pub scanned: Vec<String>,
}

/// The results of a trial run.
#[derive(Debug, Default)]
pub(super) struct SmokeTestReport {
    /// Number of tests by file.
    pub collected: BTreeMap<String, u64>,
    /// Files that cannot be collected (or folders, if a conftest is at fault).
    pub broken: Vec<CollectionError>,
    pub tests: Vec<Test>,
    /// Requested fixtures that tests use, with the first file.
    pub uses: BTreeMap<String, String>,
    /// Whether pytest finished, regardless of the tests' results.
    pub ended: bool,
    /// Whether the run was stopped by its time limit.
    pub stopped: bool,
    /// Number of files that were collected before the time limit stopped the collection.
    pub good_files: u64,
    /// The time limit in seconds that stopped the run.
    pub limit: Option<u64>,
    /// Line of the repository's code that was running then, as `FILE:LINE`. Empty if it is unknown.
    pub place: String,
    /// Exit code and complete output.
    pub printed: StepOutput,
    /// The command before the tests that failed, if any.
    pub unprepared: Option<FailedCommand>,
}

#[derive(Debug)]
pub(super) struct CollectionError {
    pub file: String,
    pub text: String,
}

/// A test that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// pytest node ID.
    pub id: String,
    /// `passed`, `failed`, `error` (in a fixture), `skipped` or `xfailed`.
    pub outcome: String,
    /// The end of pytest's report on it.
    pub text: String,
}

/// A line that the script prints. Its keys tell what it reports.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    collected: Option<BTreeMap<String, u64>>,
    broken: Option<String>,
    test: Option<String>,
    outcome: String,
    text: String,
    uses: Option<BTreeMap<String, String>>,
    stopped: Option<u64>,
    good_files: u64,
    place: String,
    ended: Option<i32>,
}

/// Runs the script in the sandbox of `steps`.
pub(super) async fn run(
    steps: &Steps<'_>,
    step: &str,
    python: &str,
    request: &Request,
) -> Result<SmokeTestReport> {
    let paths = &steps.sandbox.info().paths;
    let script = paths.temporary.join(SCRIPT_NAME);
    steps
        .sandbox
        .upload(&script, SCRIPT.as_bytes(), 0o644)
        .await?;
    let asked = paths.temporary.join("testwright-smoke-test.json");
    let folder = request.folder.clone();
    let request = serde_json::to_vec(request).map_err(std::io::Error::from)?;
    steps.sandbox.upload(&asked, &request, 0o644).await?;
    let command = Command {
        directory: Some(paths.workspace.join(&folder)),
        ..Command::new([python.to_owned(), text(&script), text(&asked)])
    };
    let printed = steps.attempt(step, &command).await?;
    Ok(SmokeTestReport::read(printed))
}

impl SmokeTestReport {
    fn read(printed: StepOutput) -> SmokeTestReport {
        let mut report = SmokeTestReport::default();
        for line in printed.text.lines() {
            let Some(json) = line.strip_prefix(RESULT_PREFIX) else {
                continue;
            };
            // Tests can print anything, so invalid lines are ignored.
            let line: Line = serde_json::from_str(json).unwrap_or_default();
            report.collected = line.collected.unwrap_or(report.collected);
            report.uses = line.uses.unwrap_or(report.uses);
            if let Some(file) = line.broken {
                let text = line.text;
                report.broken.push(CollectionError { file, text });
            } else if let Some(id) = line.test {
                let (outcome, text) = (line.outcome, line.text);
                report.tests.push(Test { id, outcome, text });
            }
            if line.stopped.is_some() {
                report.stopped = true;
                report.place = line.place;
                report.good_files += line.good_files;
                report.limit = line.stopped;
            }
            report.ended |= line.ended.is_some();
        }
        if report.stopped {
            // The time limit interrupted the collection of this file, so the error says nothing about the file.
            report
                .broken
                .retain(|error| !error.text.contains(SCRIPT_NAME));
        }
        report.printed = printed;
        report
    }

    /// Returns the messages for everything that did not work, with the file, the test or the command before the tests.
    pub(super) fn complaints(&self) -> impl Iterator<Item = (&str, &str)> {
        let broken = self
            .broken
            .iter()
            .map(|b| (b.file.as_str(), b.text.as_str()));
        let failed = |test: &&Test| match test.outcome.as_str() {
            "failed" | "error" => true,
            // Before pytest 8.4, async tests without a plugin were skipped.
            "skipped" => test.text.contains(NO_ASYNC_PLUGIN),
            _ => false,
        };
        let tests = self.tests.iter().filter(failed);
        let unprepared = self.unprepared.iter();
        let unprepared = unprepared.map(|f| (f.command.as_str(), f.printed.text.as_str()));
        broken
            .chain(tests.map(|t| (t.id.as_str(), t.text.as_str())))
            .chain(unprepared)
    }

    /// Adds the results of another trial. Results for the same test or file are replaced, and so are the output and the
    /// end of a trial that was stopped, because they do not say what is wrong.
    pub(super) fn with(mut self, more: SmokeTestReport) -> SmokeTestReport {
        let repeated = |file: &str| more.broken.iter().any(|other| other.file == file);
        self.broken.retain(|error| !repeated(&error.file));
        self.tests
            .retain(|test| !more.tests.iter().any(|other| other.id == test.id));
        self.collected.extend(more.collected);
        self.good_files += more.good_files;
        self.broken.extend(more.broken);
        self.tests.extend(more.tests);
        self.unprepared = more.unprepared;
        if self.stopped {
            self.printed = more.printed;
            (self.ended, self.stopped, self.limit) = (more.ended, more.stopped, more.limit);
            self.place = more.place;
        }
        self
    }

    /// Returns the output without the marked lines.
    pub(super) fn printed_lines(&self) -> StepOutput {
        let lines = self.printed.text.lines();
        let lines: Vec<&str> = lines
            .filter(|line| !line.starts_with(RESULT_PREFIX))
            .collect();
        StepOutput {
            code: self.printed.code,
            text: lines.join("\n"),
        }
    }
}

/// Returns the line of a failure that states the cause.
///
/// pytest puts `E` before the lines of an exception. The last of them belongs to the first cause that no other error
/// follows.
pub(super) fn reason(text: &str) -> String {
    let exceptions = text.lines().filter_map(|line| line.strip_prefix("E "));
    let mut messages = exceptions.map(str::trim).filter(|line| !line.is_empty());
    let line = messages
        .next_back()
        .or_else(|| text.lines().rfind(|line| !line.trim().is_empty()));
    failure_hints::shortened(line.unwrap_or_default().trim())
}
