#![allow(clippy::unwrap_used)]
use super::*;
use testwright_tools::outcomes::report::{CollectionError, Phase, TestResult};

fn report(tests: &[(&str, Outcome)]) -> TestReport {
    TestReport {
        tests: tests
            .iter()
            .map(|(id, o)| TestResult::new(id, *o))
            .collect(),
        ..TestReport::default()
    }
}

fn not_collected(id: &str, missing: Option<&str>) -> TestReport {
    let failure = Failure {
        phase: Phase::Collect,
        class: FailureClass::Error,
        exception: "ImportError".to_owned(),
        message: String::new(),
        frames: Vec::new(),
        missing_name: missing.map(str::to_owned),
    };
    TestReport {
        collection_errors: vec![CollectionError {
            id: id.to_owned(),
            failure,
        }],
        ..TestReport::default()
    }
}

#[test]
fn test_of_broken_module_is_an_error() {
    let new = report(&[("t/test_a.py::test[1]", Outcome::Passed)]);
    let test_pairs = pairs(&not_collected("t/test_a.py", None), &new, &[]);
    assert_eq!(test_pairs["t/test_a.py::test[1]"].old, Outcome::Error);
    let test_pairs = pairs(&not_collected("t/conftest.py", None), &new, &[]);
    assert_eq!(test_pairs["t/test_a.py::test[1]"].old, Outcome::Error);
    let test_pairs = pairs(&TestReport::default(), &new, &[]);
    assert_eq!(test_pairs["t/test_a.py::test[1]"].old, Outcome::Absent);
}

#[test]
fn test_matches_without_its_parameters() {
    let old = report(&[("t/test_a.py::test", Outcome::Error)]);
    let new = report(&[
        ("t/test_a.py::test[1]", Outcome::Passed),
        ("t/test_a.py::test[2]", Outcome::Failed),
    ]);
    let test_pairs = pairs(&old, &new, &["t/test_a.py::test".to_owned()]);
    let (old, new) = (Outcome::Error, Outcome::Passed);
    assert_eq!(test_pairs["t/test_a.py::test[1]"], Pair { old, new });
    assert_eq!(test_pairs.len(), 2, "{test_pairs:?}");
}

#[test]
fn expected_tests_not_collected_are_errors() {
    let broken = not_collected("t/test_a.py", None);
    let expected = ["t/test_a.py::test".to_owned()];
    let test_pairs = pairs(&broken, &broken, &expected);
    assert_eq!(test_pairs["t/test_a.py::test"].new, Outcome::Error);
    assert!(pairs(&TestReport::default(), &TestReport::default(), &expected).is_empty());
}

#[test]
fn without_a_passing_test_nothing_is_decided() {
    let still_pass = |old: [Outcome; 2], new: [Outcome; 2]| {
        let [old, new] = [old, new].map(|[a, b]| report(&[("t.py::a", a), ("t.py::b", b)]));
        all_still_pass(&pairs(&old, &new, &[]))
    };
    let (passed, failed) = (Outcome::Passed, Outcome::Failed);
    assert_eq!(still_pass([passed, failed], [passed, failed]), Some(true));
    assert_eq!(still_pass([passed; 2], [passed, failed]), Some(false));
    assert_eq!(still_pass([failed; 2], [failed, passed]), None);
}

#[test]
fn contradicting_exit_status_is_detected() {
    let of = |exit_code, outcomes: &[Outcome]| {
        let tests: Vec<_> = outcomes.iter().map(|o| ("t/test_a.py::test", *o)).collect();
        let report = TestReport {
            exit_code,
            ..report(&tests)
        };
        contradiction(&report).is_some()
    };
    let (passed, failed) = (Outcome::Passed, Outcome::Failed);
    assert!(of(Some(0), &[passed, failed]));
    assert!(of(Some(1), &[passed, Outcome::Xfailed]));
    assert!(!of(Some(1), &[passed, failed]) && !of(Some(0), &[passed]) && !of(None, &[failed]));
    // None of these contradicts: a strict xfail that passed, an interrupted run, and a collection error.
    assert!(!of(Some(1), &[Outcome::Xpassed]) && !of(Some(1), &[Outcome::Absent]));
    let mut broken = not_collected("t/test_a.py", None);
    broken.exit_code = Some(1);
    assert_eq!(contradiction(&broken), None);
}

#[test]
fn differing_parameters_are_not_an_interrupted_run() {
    let id = |n: &str| format!("t/test_a.py::test[{n}]");
    let (one, two) = (id("1"), id("2"));
    let mut old = report(&[(&one, Outcome::Passed)]);
    let mut new = report(&[(&one, Outcome::Passed), (&two, Outcome::Passed)]);
    (old.exit_code, new.exit_code) = (Some(0), Some(0));
    assert_eq!(unmatched_parameters(&old, &new), [two.clone()].into());
    assert_eq!(unmatched_parameters(&new, &old), [two].into());
    old.exit_code = None;
    assert!(unmatched_parameters(&old, &new).is_empty());
    let mut none = report(&[]);
    none.exit_code = Some(0);
    assert!(unmatched_parameters(&none, &new).is_empty());
}

#[test]
fn missing_name_counts_if_issue_requests_it() {
    let old = not_collected("t/test_a.py", Some("pkg.TooMany"));
    let tests = ["t/test_a.py::test".to_owned()];
    assert_eq!(
        tests_of_requested_names(&old, &tests, "Add `TooMany`."),
        tests
    );
    assert!(tests_of_requested_names(&old, &tests, "Add TooManyNames.").is_empty());
}
