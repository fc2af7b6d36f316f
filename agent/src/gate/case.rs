//! The facts that a rule decides on.

use testwright_tools::outcomes::report::{Outcome, TestResult};
use testwright_tools::tools::submission::Submission;

use super::evidence::TestEvidence;

pub(super) struct Case<'a> {
    pub submission: &'a Submission,
    pub issue: &'a str,
    pub applies: &'a Result<(), String>,
    pub failing: &'a [TestEvidence],
}

pub(super) fn failed(test: &TestResult) -> bool {
    matches!(
        test.outcome,
        Outcome::Failed | Outcome::Error | Outcome::Absent
    )
}
