//! Test files run as they are given, many in one go: how they come out ([`verify`]), and which lines of the repository they
//! run ([`cov`]). The oracle context of a test ([`context`]) is made of these.
//!
//! A case is a whole test file and its place in the repository. Cases know nothing of each other: what one writes, starts or
//! leaves behind is gone before the next one runs, and the code under test is the same before and after. Outcomes are those
//! that our pytest plugin reports; a process that ends without its report never passes.

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
pub use place::Place;

/// A test file as it shall be, and the tests in it to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub id: String,
    /// Where in the repository it is, or is to be.
    pub path: String,
    /// The whole file.
    pub source: String,
    /// `Class::test_x` or `test_x`, with or without parameters; none: all of the file.
    pub tests: Vec<String>,
    /// The longest time that all of it may take.
    pub timeout: Duration,
}

/// How a case came out. All of its tests have to pass for [`CaseOutcome::Passed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CaseOutcome {
    Passed,
    /// A test failed.
    Failed {
        message: String,
    },
    /// The file could not be collected, or a fixture failed.
    Error {
        message: String,
    },
    /// A test was skipped, deselected or expected to fail, or is not there.
    NotRun {
        reason: String,
    },
    TimedOut,
    /// The process ended before pytest reported the end of the run, or its report cannot be true.
    Crashed {
        reason: String,
    },
    /// It came out in more than one way.
    Flaky,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Of the case.
    pub id: String,
    pub outcome: CaseOutcome,
    /// Wall time of its first run.
    pub seconds: f64,
}

impl Verification {
    pub fn passed(&self) -> bool {
        self.outcome == CaseOutcome::Passed
    }
}

/// Statements of a file, by their first lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLines {
    pub hit: BTreeSet<u32>,
    pub missed: BTreeSet<u32>,
}

impl FileLines {
    /// The share of the statements that ran; 1 where there are none.
    pub fn rate(&self) -> f64 {
        match self.hit.len() + self.missed.len() {
            0 => 1.0,
            all => self.hit.len() as f64 / all as f64,
        }
    }
}

/// Lines by file.
pub type Lines = BTreeMap<String, BTreeSet<u32>>;

/// What a case ran of the repository's Python files, however it came out.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseCoverage {
    pub verification: Verification,
    /// Files of which it ran something, its own left out. Shared by the cases that ran the same lines.
    pub files: BTreeMap<String, Arc<FileLines>>,
    /// By node id: what each test ran, fixtures included, and what ran only while files were imported left out. Filled if
    /// [`CaseOptions::contexts`] asks for it.
    pub contexts: BTreeMap<String, Lines>,
    /// Why more lines may have run (the process was ended, the measuring was disturbed): of a line that is not there,
    /// nothing may be concluded.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOptions {
    /// Sandboxes at a time.
    pub workers: usize,
    /// How often each case runs; other runs than the first have other hash seeds. A case that comes out in different ways is
    /// flaky. Coverage is that of the first.
    pub repeats: u32,
    /// Which test ran which line.
    pub contexts: bool,
    /// Fork each run from a process that has loaded pytest and what the repository needs already, where that can be done.
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

/// Is told how many cases have ended.
pub type Done<'d> = &'d (dyn Fn(usize) + Send + Sync);

/// Runs cases, and gives how they came out in their order. An error is one of the machine, never of a case.
pub async fn verify(
    place: &Place,
    cases: &[Case],
    options: &CaseOptions,
) -> Result<Vec<Verification>> {
    verify_with_progress(place, cases, options, &|_| ()).await
}

/// As [`verify`], and says which lines of the repository ran.
pub async fn cov(
    place: &Place,
    cases: &[Case],
    options: &CaseOptions,
) -> Result<Vec<CaseCoverage>> {
    cov_with_progress(place, cases, options, &|_| ()).await
}

pub async fn verify_with_progress(
    place: &Place,
    cases: &[Case],
    options: &CaseOptions,
    done: Done<'_>,
) -> Result<Vec<Verification>> {
    let ran = batch::run(place, cases, options, None, done).await?;
    Ok(ran.into_iter().map(|ran| ran.verification).collect())
}

pub async fn cov_with_progress(
    place: &Place,
    cases: &[Case],
    options: &CaseOptions,
    done: Done<'_>,
) -> Result<Vec<CaseCoverage>> {
    let measure = coverage::Measuring::new(place).await?;
    batch::run(place, cases, options, Some(&measure), done).await
}
