//! Notes on tests that fail like existing tests, which suggests that the environment lacks something.

use testwright_tools::outcomes::report::{Failure, Place, TestReport};
use testwright_tools::tools::submission::Submission;

use super::TestEvidence;

/// Minimum number of existing tests with the same failure.
const MIN_TESTS: usize = 5;

/// Returns a note for each test that fails at a line, outside tests, at which existing tests of its files fail too.
pub(super) fn notes(submission: &Submission, failing: &[TestEvidence]) -> Vec<String> {
    let Some(before) = &submission.before else {
        return Vec::new();
    };
    let notes = failing.iter().filter_map(|test| note(test, before));
    notes.collect()
}

fn note(test: &TestEvidence, before: &TestReport) -> Option<String> {
    let frame = test.frame.as_ref()?;
    if frame.place == Place::Test {
        return None;
    }
    let place = (&frame.file, frame.line);
    let is_alike = |failure: &Failure| {
        let origin = failure.origin();
        failure.exception == test.exception
            && origin.is_some_and(|other| (&other.file, other.line) == place)
    };
    let failures = before
        .tests
        .iter()
        .filter_map(|result| result.failure.as_ref());
    let count = failures.filter(|failure| is_alike(failure)).count();
    (count >= MIN_TESTS).then(|| {
        format!(
            "{} fails at {}:{} like {count} existing tests: make sure that the environment is complete",
            test.id, frame.file, frame.line
        )
    })
}

#[cfg(test)]
mod tests;
