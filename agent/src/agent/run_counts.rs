//! Counts of test outcomes in a run, stored with its answer for later calls of the same message.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_tools::outcomes::report::{FailureClass, Outcome as TestOutcome, TestReport};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunCounts {
    #[serde(default)]
    passed: usize,
    failed: usize,
    /// Failed tests that failed in an assertion.
    #[serde(default)]
    assertions: usize,
    /// Errors of setup, tests that did not run or were not found, and modules that could not be collected.
    errors: usize,
    /// Whether added or changed tests were among them.
    #[serde(default = "yes")]
    contributed: bool,
}

pub(super) fn yes() -> bool {
    true
}

/// The kind of a failure, the best first (Otter §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// An assertion fails.
    Assertion,
    /// A test fails, but not in an assertion.
    Other,
    /// A test cannot run: its setup, its teardown or the collection of its module fails.
    Error,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::Assertion => "an assertion",
            FailureKind::Other => "another failure",
            FailureKind::Error => "an error",
        })
    }
}

impl RunCounts {
    /// Returns the data to store with a run's answer: the counts instead of the report.
    pub(super) fn of_report(data: &Value) -> Value {
        let Ok(report) = TestReport::deserialize(data) else {
            return Value::Null;
        };
        let count = |outcomes: &[TestOutcome]| {
            let tests = report.tests.iter();
            tests
                .filter(|test| outcomes.contains(&test.outcome))
                .count()
        };
        let counts = RunCounts {
            passed: count(&[TestOutcome::Passed]),
            failed: count(&[TestOutcome::Failed]),
            assertions: (report.tests.iter())
                .filter(|test| test.outcome == TestOutcome::Failed)
                .filter_map(|test| test.failure.as_ref())
                .filter(|failure| failure.class == FailureClass::Assertion)
                .count(),
            errors: count(&[TestOutcome::Error, TestOutcome::Absent])
                + report.collection_errors.len()
                + report.not_found.len(),
            contributed: data["contributed"] != false,
        };
        serde_json::to_value(counts).unwrap_or_default()
    }

    pub(super) fn read(data: &Value) -> Option<Self> {
        RunCounts::deserialize(data).ok()
    }

    pub(super) fn has_contributed(self) -> bool {
        self.contributed
    }

    pub(super) fn has_failure(self) -> bool {
        self.failed + self.errors > 0
    }

    /// Returns the best kind of failure in the run, by Otter's order.
    pub(super) fn kind(self) -> Option<FailureKind> {
        match self {
            counts if counts.assertions > 0 => Some(FailureKind::Assertion),
            counts if counts.failed > 0 => Some(FailureKind::Other),
            counts if counts.errors > 0 => Some(FailureKind::Error),
            _ => None,
        }
    }

    /// Returns whether a test passes and nothing fails.
    pub(super) fn is_clean(self) -> bool {
        self.passed > 0 && !self.has_failure()
    }

    /// Returns whether a test fails and there is no error.
    pub(super) fn shows_failure(self) -> bool {
        self.failed > 0 && self.errors == 0
    }
}
