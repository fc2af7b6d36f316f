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
mod tests {
    use testwright_tools::outcomes::report::{FailureClass, Frame, Outcome, Phase, TestResult};

    use super::*;

    fn frame(place: Place) -> Frame {
        Frame {
            file: "jedi/typeshed.py".to_owned(),
            line: 3,
            function: "read".to_owned(),
            code: "open(path)".to_owned(),
            place,
        }
    }

    #[test]
    fn failures_of_existing_tests_are_compared() {
        let note_of = |count: usize, place: Place| {
            let failure = Failure {
                phase: Phase::Call,
                class: FailureClass::Exception,
                exception: "FileNotFoundError".to_owned(),
                message: String::new(),
                frames: vec![frame(place)],
                missing_name: None,
            };
            let result = |n: usize| TestResult {
                failure: Some(failure.clone()),
                ..TestResult::new(&format!("t.py::test_{n}"), Outcome::Failed)
            };
            let before = TestReport {
                tests: (0..count).map(result).collect(),
                ..TestReport::default()
            };
            let test = TestEvidence {
                id: "t.py::test_new".to_owned(),
                outcome: Outcome::Failed,
                phase: Phase::Call,
                class: FailureClass::Exception,
                exception: failure.exception.clone(),
                message: String::new(),
                frame: Some(frame(place)),
                missing_name: None,
                executed: Vec::new(),
                unreached: Vec::new(),
                test_double: None,
                warning_as_error: false,
            };
            note(&test, &before)
        };
        let note = note_of(5, Place::Source).unwrap_or_default();
        assert!(
            note.starts_with("t.py::test_new fails at jedi/typeshed.py:3 like 5 existing tests"),
            "{note}"
        );
        assert_eq!(note_of(4, Place::Source), None);
        assert_eq!(note_of(5, Place::Test), None);
    }
}
