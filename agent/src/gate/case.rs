//! The facts that a rule decides on.

use testwright_tools::outcomes::report::{CollectionError, Outcome, TestResult};
use testwright_tools::tools::submission::{Change, ContributedTest, Submission};

use super::evidence::TestEvidence;

pub(super) struct Case<'a> {
    pub submission: &'a Submission,
    pub issue: &'a str,
    pub applies: &'a Result<(), String>,
    pub failing: &'a [TestEvidence],
}

/// Returns the tests that a patch adds or changes, without those that it deletes.
pub(crate) fn contributed(submission: &Submission) -> impl Iterator<Item = &ContributedTest> {
    let tests = submission.contributed.iter();
    tests.filter(|test| test.change != Change::Deleted)
}

/// Returns whether a test is in the module that an error is about.
pub(super) fn is_in_module(id: &str, error: &CollectionError) -> bool {
    let rest = id.strip_prefix(error.id.as_str());
    rest.is_some_and(|rest| rest.starts_with("::"))
}

pub(super) fn failed(test: &TestResult) -> bool {
    matches!(
        test.outcome,
        Outcome::Failed | Outcome::Error | Outcome::Absent
    )
}
