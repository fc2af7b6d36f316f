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
