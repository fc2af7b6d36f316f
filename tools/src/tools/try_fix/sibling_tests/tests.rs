//! Tests of the reports about siblings.

use super::*;
use crate::outcomes::report::{Failure, FailureClass, Phase};

fn ids(of: &[&str]) -> Vec<String> {
    of.iter().map(|id| (*id).to_owned()).collect()
}

fn died() -> Failure {
    Failure {
        phase: Phase::Call,
        class: FailureClass::Error,
        exception: "process".to_owned(),
        message: "it ended while this test ran".to_owned(),
        frames: Vec::new(),
        missing_name: None,
    }
}

#[test]
fn whole_files_run_requested_tests_first() {
    let targets = ids(&["t/test_a.py::test_new", "t/test_a.py::A::test_new", "t/b"]);
    let scope = TrialScope::new(&targets, true);
    assert_eq!(scope.run, ids(&["t/test_a.py", "t/b"]));
    let options = scope.options(&[], Instant::now());
    assert_eq!(
        (options.first, options.rest_seconds),
        (targets, Some(SECONDS))
    );
    let report = TestReport {
        tests: vec![
            TestResult::new("t/test_a.py::test_new", Outcome::Passed),
            TestResult::new("t/b/test_b.py::test_old", Outcome::Failed),
            TestResult::new("t/test_a.py::test_old", Outcome::Passed),
        ],
        ..TestReport::default()
    };
    let (report, siblings) = scope.split(report);
    assert_eq!((report.tests.len(), siblings.good), (2, 1));
}

#[test]
fn verdict_counts_requested_tests() {
    let of = |by_name: bool, outcomes: &[Outcome]| {
        let report = TestReport {
            tests: outcomes.iter().map(|o| TestResult::new("a", *o)).collect(),
            ..TestReport::default()
        };
        TrialScope::new(&[], by_name).verdict(&report)
    };
    use Outcome::{Failed, Passed, Skipped};
    insta::assert_snapshot!([
        of(false, &[Passed]),
        of(false, &[Passed, Passed]),
        of(true, &[Passed, Failed]),
        of(true, &[Failed]),
        of(false, &[Skipped]),
    ].join("\n"), @r"
    The test that you added or changed passes with this fix.
    All 2 tests that you added or changed pass with this fix.
    1 of the 2 tests that you named passes with this fix.
    None of the tests that you named passes with this fix: the fix is incomplete, or the test asks for something else.
    None of the tests that you added or changed ran with this fix.
    ");
}

#[test]
fn siblings_are_compared_without_the_fix() {
    let report = TestReport::default();
    let mut all = SiblingTests::new(
        vec![
            TestResult::new("a", Outcome::Passed),
            TestResult::new("b", Outcome::Failed),
            TestResult::new("c", Outcome::Error),
            TestResult::new("d", Outcome::Failed),
            TestResult::new("e", Outcome::Failed),
            TestResult::new("f", Outcome::Xfailed),
        ],
        &report,
    );
    all.failing[0].alone = Some(Outcome::Failed);
    all.failing[0].without_fix = Some(Outcome::Passed);
    all.failing[1].alone = Some(Outcome::Error);
    all.failing[1].without_fix = Some(Outcome::Error);
    all.failing[3].alone = Some(Outcome::Passed);
    all.failing[3].without_fix = Some(Outcome::Passed);
    insta::assert_snapshot!(format!("{}{}", all.summary().trim_start(), all.details()), @r"
    The fix breaks 1 of 6 neighbours in a, b, c and 3 more files: b; 1 fails with and without it; 1 fails only among the others; 1 fails and was not tried without it. (It may pin what the issue calls wrong.)

    The fix breaks:

    FAILED b

    Not tried without the fix:

    FAILED d

    Failing with and without the fix:
    c

    Failing only among the others:
    e
    ");
    assert_eq!(SiblingTests::default().summary(), "");
    let good = [
        "a.py::t",
        "b.py::t",
        "c.py::t",
        "d.py::t",
        "e.py::T::t",
        "e.py::t",
    ];
    let good = good.map(|id| TestResult::new(id, Outcome::Passed));
    assert_eq!(
        SiblingTests::new(good[..2].to_vec(), &report).summary(),
        "\nThe fix breaks none of 2 neighbours in a.py, b.py."
    );
    assert_eq!(
        SiblingTests::new(good.to_vec(), &report).summary(),
        "\nThe fix breaks none of 6 neighbours in a.py, b.py, c.py and 2 more files."
    );
}

#[test]
fn siblings_failing_alike_are_merged() {
    let test = |name: &str, message: &str| TestResult {
        failure: Some(Failure {
            message: message.to_owned(),
            ..died()
        }),
        ..TestResult::new(&format!("t.py::{name}"), Outcome::Failed)
    };
    let tests = [
        ("a", "no port 80"),
        ("b", "other"),
        ("c", "no port 81"),
        ("d", "no port 82"),
    ];
    let tests = tests.map(|(name, message)| test(name, message));
    let mut all = SiblingTests::new(tests.to_vec(), &TestReport::default());
    for sibling in &mut all.failing {
        (sibling.alone, sibling.without_fix) = (Some(Outcome::Failed), Some(Outcome::Failed));
    }
    assert_eq!(
        all.details().trim_start(),
        "Failing with and without the fix:\nt.py::a and 2 more: process: no port 80\nt.py::b: process: other"
    );
}

#[test]
fn unfinished_siblings_are_not_failures() {
    let text = |good: usize, report: &TestReport| {
        let mut tests = vec![TestResult::new("g", Outcome::Passed); good];
        let mut long = TestResult::new("long", Outcome::Absent);
        if report.rest_timed_out {
            long.captured = "not finished in time".to_owned();
        }
        if report.timed_out {
            long.failure = Some(died());
        }
        tests.extend([long, TestResult::new("after", Outcome::Absent)]);
        let all = SiblingTests::new(tests, report);
        assert!(all.failing.is_empty());
        all.summary()
    };
    let limit = TestReport {
        rest_timed_out: true,
        ..TestReport::default()
    };
    insta::assert_snapshot!(text(7, &limit).trim_start(), @r"
    The fix breaks none of 7 neighbours that ran, of 9 in g.
    Not all of the neighbours ran within 30 s; the nearest ran first.
    long was not finished in time.
    ");
    assert!(text(8, &limit).contains("8 neighbours that ran, of 10"));
    let deadline = TestReport {
        timed_out: true,
        ..TestReport::default()
    };
    assert!(text(1, &deadline).contains(
        "ran before the time for the whole run was over; the nearest ran first.\nlong was"
    ));
    assert!(
        text(1, &TestReport::default())
            .ends_with("ran before pytest ended; the nearest ran first.")
    );
    let mut report = TestReport {
        tests: vec![
            TestResult::new("a", Outcome::Failed),
            TestResult::new("b", Outcome::Absent),
        ],
        ..TestReport::default()
    };
    report.tests[1].failure = Some(died());
    assert_eq!(known(report.clone()).len(), 2);
    report.timed_out = true;
    let known_ids: Vec<String> = known(report).into_iter().map(|test| test.id).collect();
    assert_eq!(known_ids, ["a"]);
}
