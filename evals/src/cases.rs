//! Runs given test files, many in one batch: their outcomes ([`verify`]) and the repository lines they run ([`cov`]).
//! The oracle context of a test ([`context`]) is built from these results.
//!
//! A case is a whole test file and its path in the repository. Cases are isolated from each other: whatever a case
//! writes, starts or leaves behind is removed before the next one runs, and the code under test stays the same.
//! Outcomes are those reported by testwright's pytest plugin. A process that ends without its report never passes.

mod batch;
pub mod context;
mod coverage;
mod empty_test;
mod outcome;
mod place;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testwright_sandboxes::sandbox::Result;

pub use empty_test::empty_test;
pub use place::CaseEnvironment;

/// A test file with its final content, and the tests in it to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Unique id of the case, chosen by the caller.
    pub id: String,
    /// Path in the repository; the file may not exist there yet.
    pub path: String,
    /// The complete text of the file.
    pub source: String,
    /// Tests as `Class::test_x` or `test_x`, with or without parameters. If empty, the whole file runs.
    pub tests: Vec<String>,
    /// Maximum time for the whole case.
    pub timeout: Duration,
}

/// The outcome of a case. [`CaseOutcome::Passed`] requires that all of its tests pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CaseOutcome {
    /// All tests of the case passed.
    Passed,
    /// A test failed.
    Failed {
        /// Node id of the test, class of the exception and its message.
        message: String,
    },
    /// The file could not be collected, or a fixture failed.
    Error {
        /// Node id of the test or file, class of the exception and its message.
        message: String,
    },
    /// A test was skipped, deselected, expected to fail, or does not exist.
    NotRun {
        /// Explanation, with the node id of the test.
        reason: String,
    },
    /// The case exceeded its timeout.
    TimedOut,
    /// The process ended before pytest reported the end of the run, or its report contradicts itself.
    Crashed {
        /// Description of how the run ended.
        reason: String,
    },
    /// Repeated runs had different outcomes.
    Flaky,
}

/// Outcome of a case, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Id of the case.
    pub id: String,
    /// Outcome of all runs of the case.
    pub outcome: CaseOutcome,
    /// Wall time of the first run.
    pub seconds: f64,
}

impl Verification {
    /// Returns whether all tests of the case passed.
    pub fn passed(&self) -> bool {
        self.outcome == CaseOutcome::Passed
    }
}

/// Statements of a file, each identified by its first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLines {
    /// First lines of the statements that ran.
    pub hit: BTreeSet<u32>,
    /// First lines of the statements that did not run.
    pub missed: BTreeSet<u32>,
}

impl FileLines {
    /// Returns the share of statements that ran, or 1 if the file has no statements.
    pub fn rate(&self) -> f64 {
        match self.hit.len() + self.missed.len() {
            0 => 1.0,
            all => self.hit.len() as f64 / all as f64,
        }
    }
}

/// Line numbers by file.
pub type Lines = BTreeMap<String, BTreeSet<u32>>;

/// Lines of the repository's Python files that a case ran, whatever its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseCoverage {
    /// Outcome of the case.
    pub verification: Verification,
    /// Files of which the case ran something, without its own file. Cases that ran the same lines share an entry.
    pub files: BTreeMap<String, Arc<FileLines>>,
    /// Lines that each test ran, by node id. Includes fixtures and excludes lines that ran only during import. Filled
    /// if [`CaseOptions::contexts`] is set.
    pub contexts: BTreeMap<String, Lines>,
    /// Why the coverage may be incomplete, for example because the process was killed or the measurement was disturbed.
    /// If set, a line that is not listed may still have run.
    pub problem: Option<String>,
}

/// Options for running cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOptions {
    /// Maximum concurrent sandboxes.
    pub workers: usize,
    /// Runs per case. Each repetition has another hash seed; different outcomes make a case flaky. Coverage comes from
    /// the first run.
    pub repeats: u32,
    /// Whether to record which test ran which line.
    pub contexts: bool,
    /// Whether to fork each run, if possible, from a process that has already loaded pytest and the repository's
    /// dependencies.
    pub warm: bool,
}

impl Default for CaseOptions {
    fn default() -> Self {
        CaseOptions {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            repeats: 1,
            contexts: false,
            warm: true,
        }
    }
}

/// Callback that receives the number of finished cases.
pub type CaseProgress<'d> = &'d (dyn Fn(usize) + Send + Sync);

/// Runs cases and returns their outcomes, in the order of the cases.
///
/// # Errors
///
/// Fails if a sandbox cannot start or stops working for a reason other than a case.
pub async fn verify(
    place: &CaseEnvironment,
    cases: &[Case],
    options: &CaseOptions,
) -> Result<Vec<Verification>> {
    let ran = run(place, cases, options, false, &|_| ()).await?;
    Ok(ran.into_iter().map(|ran| ran.verification).collect())
}

/// Runs cases as [`verify`] does, and also measures which lines of the repository they run.
///
/// # Errors
///
/// Fails as [`verify`] does, or if coverage.py is not available.
pub async fn cov(
    place: &CaseEnvironment,
    cases: &[Case],
    options: &CaseOptions,
) -> Result<Vec<CaseCoverage>> {
    run(place, cases, options, true, &|_| ()).await
}

/// Runs cases as [`verify`] does, or as [`cov`] does if they are measured, and reports progress to `done`.
///
/// # Errors
///
/// Fails as [`verify`] and [`cov`] do.
pub async fn run(
    place: &CaseEnvironment,
    cases: &[Case],
    options: &CaseOptions,
    is_measured: bool,
    done: CaseProgress<'_>,
) -> Result<Vec<CaseCoverage>> {
    let measuring = match is_measured {
        true => Some(coverage::CoverageContext::new(place).await?),
        false => None,
    };
    batch::run(place, cases, options, measuring.as_ref(), done).await
}
