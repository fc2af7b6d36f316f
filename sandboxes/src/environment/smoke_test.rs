//! Some tests of a repository, collected and run: what works, and what the others say is missing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::steps::{StepOutput, Steps, text};
use crate::sandbox::{Command, Result};

const SCRIPT: &str = include_str!("smoke_test.py");

/// Stands in the traceback of what it stops.
const SCRIPT_NAME: &str = "testwright-smoke-test.py";

/// What a line begins with that is for us.
const MARK: &str = "testwright-smoke-test: ";

/// What pytest says where it skips an async test.
pub(super) const NO_ASYNC_PLUGIN: &str = "no async plugin installed";

/// What `smoke_test.py` is asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Request {
    /// None: what pytest's configuration says.
    pub files: Vec<String>,
    pub options: Vec<String>,
    /// So many tests of each file are run.
    pub per_file: usize,
    /// So many of all, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    pub seed: u64,
    /// The whole ends after so many seconds, if tests have no limit of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Seconds that one test may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_seconds: Option<u64>,
    /// Fixtures that are looked for in `scanned`.
    pub fixtures: Vec<&'static str>,
    /// Files that are read and not run.
    pub scanned: Vec<String>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Tests by file.
    pub collected: BTreeMap<String, u64>,
    /// Files (or folders, where a conftest is to blame) that cannot be collected.
    pub broken: Vec<CollectionError>,
    pub tests: Vec<Test>,
    /// Fixtures that were looked for and that tests take, with the first file.
    pub uses: BTreeMap<String, String>,
    /// pytest came to its end, whatever the tests did.
    pub ended: bool,
    /// It was stopped because the time was over.
    pub stopped: bool,
    /// Exit code and everything that was printed.
    pub printed: StepOutput,
}

#[derive(Debug)]
pub(super) struct CollectionError {
    pub file: String,
    pub text: String,
}

/// A test that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// Node id.
    pub id: String,
    /// `passed`, `failed`, `error` (in a fixture), `skipped` or `xfailed`.
    pub outcome: String,
    /// The end of what pytest says of it.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Collected {
        collected: BTreeMap<String, u64>,
    },
    Broken {
        broken: String,
        text: String,
    },
    Test {
        test: String,
        outcome: String,
        text: String,
    },
    Uses {
        uses: BTreeMap<String, String>,
    },
    Stopped {
        #[serde(rename = "stopped")]
        _seconds: u64,
    },
    Ended {
        #[serde(rename = "ended")]
        _code: i32,
    },
}

/// Runs the script in the sandbox of `steps`.
pub(super) async fn run(
    steps: &Steps<'_>,
    step: &str,
    python: &str,
    request: &Request,
) -> Result<Report> {
    let paths = &steps.sandbox.info().paths;
    let script = paths.temporary.join(SCRIPT_NAME);
    steps
        .sandbox
        .upload(&script, SCRIPT.as_bytes(), 0o644)
        .await?;
    let asked = paths.temporary.join("testwright-smoke-test.json");
    let request = serde_json::to_vec(request).map_err(std::io::Error::from)?;
    steps.sandbox.upload(&asked, &request, 0o644).await?;
    let command = Command::new([python.to_owned(), text(&script), text(&asked)]);
    let printed = steps.attempt(step, &command).await?;
    Ok(Report::read(printed))
}

impl Report {
    fn read(printed: StepOutput) -> Report {
        let mut report = Report::default();
        for line in printed.text.lines() {
            let Some(json) = line.strip_prefix(MARK) else {
                continue;
            };
            match serde_json::from_str(json) {
                Ok(Line::Collected { collected }) => report.collected = collected,
                Ok(Line::Broken { broken, text }) => {
                    report.broken.push(CollectionError { file: broken, text });
                }
                Ok(Line::Test {
                    test: id,
                    outcome,
                    text,
                }) => report.tests.push(Test { id, outcome, text }),
                Ok(Line::Uses { uses }) => report.uses = uses,
                Ok(Line::Stopped { .. }) => report.stopped = true,
                Ok(Line::Ended { .. }) => report.ended = true,
                // A test can print what it likes.
                Err(_) => {}
            }
        }
        if report.stopped {
            // It was about to be collected when the time was over, which says nothing of the file.
            report
                .broken
                .retain(|error| !error.text.contains(SCRIPT_NAME));
        }
        report.printed = printed;
        report
    }

    /// What pytest said of everything that did not work.
    pub fn complaints(&self) -> impl Iterator<Item = (&str, &str)> {
        let broken = self
            .broken
            .iter()
            .map(|b| (b.file.as_str(), b.text.as_str()));
        let failed = |test: &&Test| match test.outcome.as_str() {
            "failed" | "error" => true,
            // Before pytest 8.4, async tests for which there is no plugin were skipped.
            "skipped" => test.text.contains(NO_ASYNC_PLUGIN),
            _ => false,
        };
        let tests = self.tests.iter().filter(failed);
        broken.chain(tests.map(|t| (t.id.as_str(), t.text.as_str())))
    }

    /// StepOutput lines that are not marked.
    pub fn printed_lines(&self) -> StepOutput {
        let lines = self.printed.text.lines();
        let lines: Vec<&str> = lines.filter(|line| !line.starts_with(MARK)).collect();
        StepOutput {
            code: self.printed.code,
            text: lines.join("\n"),
        }
    }
}

/// The line of a complaint that says what is wrong: pytest puts `E` before those of the exception; the last of them is the
/// first cause that is not followed by another.
pub(super) fn reason(text: &str) -> String {
    let exceptions = text.lines().filter_map(|line| line.strip_prefix("E "));
    let mut messages = exceptions.map(str::trim).filter(|line| !line.is_empty());
    let line = messages
        .next_back()
        .or_else(|| text.lines().rfind(|line| !line.trim().is_empty()));
    let line = line.unwrap_or_default().trim();
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_owned(),
    }
}
