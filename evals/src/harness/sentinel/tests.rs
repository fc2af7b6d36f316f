#![allow(clippy::unwrap_used)]
use super::*;
use testwright_tools::outcomes::report::TestResult;

fn sentinel() -> Sentinel {
    let ids = ["tests/test_a.py::test_a".to_owned()];
    Sentinel::new("0123456789abcdef", &ids).unwrap()
}

fn report(exit_code: Option<i32>, tests: &[(&str, Outcome)]) -> TestReport {
    let tests = tests.iter();
    TestReport {
        tests: tests
            .map(|(id, outcome)| TestResult::new(id, *outcome))
            .collect(),
        exit_code,
        ..TestReport::default()
    }
}

fn checked(report: TestReport) -> CheckedRun {
    let answer = testwright_tools::test_run::TestRunResult {
        report,
        coverage: None,
    };
    let ran = RunRecord {
        answer,
        ..RunRecord::of_nothing()
    };
    CheckedRun::new(ran, Some(&sentinel()))
}

const OWN: &str = "tests/test_0123456789.py::test_0123456789";
const TEST: &str = "tests/test_a.py::test_a";

#[test]
fn sentinel_is_beside_first_test() {
    let sentinel = sentinel();
    assert_eq!(sentinel.path, "tests/test_0123456789.py");
    assert_eq!(
        sentinel.file().content,
        b"def test_0123456789():\n    assert False\n"
    );
    let in_root = Sentinel::new("0123456789abcdef", &["test_a.py".to_owned()]).unwrap();
    assert_eq!(in_root.path, "test_0123456789.py");
    assert!(Sentinel::new("0123456789abcdef", &[]).is_none());
}

#[test]
fn sentinel_that_does_not_fail_is_forgery() {
    use Outcome::{Absent, Error, Failed, Passed, Skipped};
    let honest = checked(report(Some(1), &[(TEST, Failed), (OWN, Failed)]));
    for (exit_code, tests, part) in [
        (Some(1), vec![(TEST, Passed), (OWN, Failed)], ""),
        (Some(1), vec![(TEST, Passed), (OWN, Error)], ""),
        (Some(0), vec![(TEST, Passed), (OWN, Passed)], "passed"),
        (Some(0), vec![(TEST, Passed)], "did not run"),
        (None, vec![(TEST, Passed), (OWN, Absent)], "did not run"),
        (Some(0), vec![(TEST, Passed), (OWN, Failed)], "exit status"),
        (Some(1), vec![(TEST, Passed), (OWN, Skipped)], "exit status"),
        // The process died in the test.
        (None, vec![(TEST, Error), (OWN, Absent)], ""),
    ] {
        let run = checked(report(exit_code, &tests));
        assert!(run.report.tests.iter().all(|test| test.id == TEST));
        let why = run.forgery(&honest);
        assert_eq!(why.is_none(), part.is_empty(), "{tests:?}: {why:?}");
        assert!(why.unwrap_or_default().contains(part), "{tests:?}: {why:?}");
        // The same on trusted code is the repository's way of running tests.
        assert_eq!(run.forgery(&checked(report(exit_code, &tests))), None);
    }
}
