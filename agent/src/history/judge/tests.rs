//! Verdicts on reports of single runs.

use std::collections::BTreeMap;

use testwright_sandboxes::repository::Files;
use testwright_tools::outcomes::report::{CollectionError, Phase, TestResult};

use super::*;

const ID: &str = "tests/test_a.py::test_a";
const LINE: &str = "assert slug('a b') == 'a-b'";

fn frame(place: Place, function: &str, code: &str) -> Frame {
    Frame {
        file: "a.py".to_owned(),
        line: 7,
        function: function.to_owned(),
        code: code.to_owned(),
        place,
    }
}

fn failure(class: FailureClass, exception: &str, message: &str, frame: Frame) -> Failure {
    Failure {
        phase: Phase::Call,
        class,
        exception: exception.to_owned(),
        message: message.to_owned(),
        frames: vec![frame],
        missing_name: None,
    }
}

fn assertion(message: &str, code: &str) -> Failure {
    let frame = frame(Place::Test, "test_a", code);
    failure(FailureClass::Assertion, "AssertionError", message, frame)
}

fn raised(message: &str, function: &str) -> Failure {
    let frame = frame(Place::Source, function, "return table[key]");
    failure(FailureClass::Exception, "KeyError", message, frame)
}

fn accepted(failure: &Failure) -> TestEvidence {
    TestEvidence::from_failure(ID, Outcome::Failed, failure)
}

fn report(outcome: Outcome, failure: Option<&Failure>) -> TestReport {
    TestReport {
        tests: vec![TestResult {
            failure: failure.cloned(),
            ..TestResult::new(ID, outcome)
        }],
        ..TestReport::default()
    }
}

fn judged(report: &TestReport, tests: &[TestEvidence]) -> (Verdict, String) {
    let placement = Placement::unchanged(Files::new());
    let Answer {
        verdict, reason, ..
    } = judge(report, tests, &placement);
    (verdict, reason)
}

fn verdict_on(accepted_failure: &Failure, failure: &Failure) -> Verdict {
    let report = report(Outcome::Failed, Some(failure));
    judged(&report, &[accepted(accepted_failure)]).0
}

#[test]
fn assertion_must_be_in_same_line() {
    let first = assertion("assert 'a' == 'a-b'", LINE);
    let other_value = assertion("assert '' == 'a-b'", LINE);
    assert_eq!(verdict_on(&first, &other_value), Verdict::Fails);
    let other_line = assertion("assert 'a' == 'a-b'", "assert slug('a') == 'a'");
    assert_eq!(verdict_on(&first, &other_line), Verdict::CannotTell);

    let without_code = assertion("assert 'a' == 'a-b'", "");
    assert_eq!(verdict_on(&without_code, &without_code), Verdict::Fails);
    let other_message = assertion("assert 'a' == 'b'", "");
    assert_eq!(
        verdict_on(&without_code, &other_message),
        Verdict::CannotTell
    );
}

#[test]
fn same_statement_may_be_reported_in_other_line() {
    let not_raised = "DID NOT RAISE <class 'ValueError'>";
    for (message, line, older_line) in [
        (not_raised, "with pytest.raises(ValueError):", "slug('')"),
        (
            "KeyError not raised",
            "with self.assertRaises(KeyError):",
            "slug('')",
        ),
        ("'a' != 'a-b'", "self.assertEqual(", "'a-b')"),
    ] {
        let first = assertion(message, line);
        let older = assertion(message, older_line);
        assert_eq!(verdict_on(&first, &older), Verdict::Fails, "{message}");
        let other = assertion("'b' != 'c'", older_line);
        assert_eq!(verdict_on(&first, &other), Verdict::CannotTell, "{message}");
    }
}

#[test]
fn exception_needs_same_message_or_function() {
    let first = raised("'x'", "Table.look_up");
    assert_eq!(
        verdict_on(&first, &raised("'y'", "look_up")),
        Verdict::Fails
    );
    assert_eq!(verdict_on(&first, &raised("'x'", "moved")), Verdict::Fails);
    let other = raised("'y'", "moved");
    assert_eq!(verdict_on(&first, &other), Verdict::CannotTell);
    let in_fixture = Failure {
        phase: Phase::Setup,
        ..first.clone()
    };
    assert_eq!(verdict_on(&first, &in_fixture), Verdict::CannotTell);
    let report = report(Outcome::Failed, Some(&other));
    let (_, reason) = judged(&report, &[accepted(&first)]);
    assert_eq!(reason, "another failure: KeyError: 'y'");
}

#[test]
fn test_that_does_not_run_tells_nothing() {
    let first = assertion("assert 'a' == 'a-b'", LINE);
    let tests = [accepted(&first)];
    let passed = report(Outcome::Passed, None);
    assert_eq!(judged(&passed, &tests), (Verdict::Passes, String::new()));
    for outcome in [Outcome::Skipped, Outcome::Xpassed, Outcome::Absent] {
        let (verdict, _) = judged(&report(outcome, None), &tests);
        assert_eq!(verdict, Verdict::CannotTell, "{outcome:?}");
    }
    let placement = Placement::unchanged(Files::new());
    for (contradicted, timed_out) in [(true, false), (false, true)] {
        let distrusted = TestReport {
            contradicted,
            timed_out,
            ..passed.clone()
        };
        let answer = judge(&distrusted, &tests, &placement);
        assert_eq!(answer.verdict, Verdict::CannotTell);
        assert_eq!(answer.is_external, timed_out);
    }
    let (verdict, reason) = judged(&TestReport::default(), &tests);
    assert_eq!(verdict, Verdict::CannotTell);
    assert_eq!(reason, "the test was not found");
}

#[test]
fn import_error_fails_only_if_accepted() {
    let missing = |name: &str| {
        let message = format!("cannot import name '{name}'");
        let frame = frame(Place::Test, "<module>", "from a import b");
        Failure {
            phase: Phase::Collect,
            missing_name: Some(name.to_owned()),
            ..failure(FailureClass::Error, "ImportError", &message, frame)
        }
    };
    let report = TestReport {
        collection_errors: vec![CollectionError {
            id: "tests/test_a.py".to_owned(),
            failure: missing("total"),
        }],
        ..TestReport::default()
    };
    let new_function = accepted(&missing("total"));
    assert_eq!(judged(&report, &[new_function]).0, Verdict::Fails);
    let (verdict, reason) = judged(&report, &[accepted(&assertion("assert 0", LINE))]);
    assert_eq!(verdict, Verdict::CannotTell);
    assert_eq!(
        reason,
        "the test cannot be imported: ImportError: cannot import name 'total'"
    );
}

#[test]
fn partial_pass_tells_nothing() {
    let first = assertion("assert 'a' == 'a-b'", LINE);
    let mut both = report(Outcome::Failed, Some(&first));
    let other = "tests/test_a.py::test_b";
    both.tests.push(TestResult::new(other, Outcome::Passed));
    let second = TestEvidence {
        id: other.to_owned(),
        ..accepted(&first)
    };
    let (verdict, reason) = judged(&both, &[accepted(&first), second]);
    assert_eq!(verdict, Verdict::CannotTell);
    assert!(reason.starts_with("1 of 2 tests pass: "), "{reason}");
}

#[test]
fn renamed_test_is_found() {
    let first = assertion("assert 'a' == 'a-b'", LINE);
    let mut copy = report(Outcome::Failed, Some(&first));
    copy.tests[0].id = "tests/test_copy.py::test_a".to_owned();
    let placement = Placement {
        files: Files::new(),
        renamed: BTreeMap::from([(
            "tests/test_a.py".to_owned(),
            "tests/test_copy.py".to_owned(),
        )]),
    };
    let answer = judge(&copy, &[accepted(&first)], &placement);
    assert_eq!(answer.verdict, Verdict::Fails);
}
