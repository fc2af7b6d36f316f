#![allow(clippy::unwrap_used)]

use super::super::smoke_test::Test;
use super::*;

#[test]
fn sample_is_spread_evenly() {
    let all: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    assert_eq!(spread(&all, 4, 0), ["0", "25", "50", "75"]);
    assert_eq!(spread(&all, 4, 1), ["1", "26", "51", "76"]);
    assert_eq!(spread(&all[..3], 4, 0), ["0", "1", "2"]);
    assert_eq!(spread(&[], 4, 1), [""; 0]);
}

fn report(outcomes: &[&str]) -> SmokeTestReport {
    let test = |(n, outcome): (usize, &&str)| Test {
        id: format!("test_a.py::test_{n}"),
        outcome: (*outcome).to_owned(),
        text: "E   OSError: no".to_owned(),
    };
    SmokeTestReport {
        tests: outcomes.iter().enumerate().map(test).collect(),
        ..SmokeTestReport::default()
    }
}

#[test]
fn environment_without_passing_test_is_rejected() {
    assert!(is_rejected(&report(&["error", "failed", "skipped"])));
    for outcomes in [
        &["error", "passed"][..],
        &["failed", "xfailed"],
        &["skipped"],
        &[],
    ] {
        assert!(!is_rejected(&report(outcomes)), "{outcomes:?}");
    }
}

/// The time can be up before the last file is collected, such as on a busy machine.
#[test]
fn broken_files_count_although_time_was_up() {
    let error = |file: &str| smoke_test::CollectionError {
        file: file.to_owned(),
        text: "E   FileNotFoundError: no data".to_owned(),
    };
    let mut report = SmokeTestReport {
        stopped: true,
        broken: vec![error("tests/test_a.py"), error("tests/test_b.py")],
        ..SmokeTestReport::default()
    };
    assert!(lacks_results(&report) && lacks_good_files(&report));
    report.good_files = 1;
    assert!(!lacks_good_files(&report));
    report = SmokeTestReport {
        stopped: true,
        ..SmokeTestReport::default()
    };
    assert!(lacks_results(&report) && !lacks_good_files(&report));
}

#[test]
fn aborted_second_trial_counts() {
    let trial = |text: &str, stopped| SmokeTestReport {
        collected: [("test_a.py".to_owned(), 1)].into(),
        stopped,
        ended: true,
        printed: steps::StepOutput {
            code: 2,
            text: text.to_owned(),
        },
        ..SmokeTestReport::default()
    };
    let stopped = trial("KeyboardInterrupt", true);
    assert!(!is_aborted(&stopped));
    let both = stopped.with(trial("Exit: Connection refused", false));
    assert!(is_aborted(&both));
    assert_eq!(both.printed.text, "Exit: Connection refused");
    assert!(!is_aborted(&both.with(report(&["passed"]))));
}

#[test]
fn mostly_failing_tests_are_noted() {
    let note = mostly_failing(&report(&["failed", "error", "failed", "failed", "passed"]));
    let (note, text) = note.unwrap();
    assert_eq!(
        note,
        "of 5 tests that were tried, 4 fail, 4 of them with: OSError: no"
    );
    assert_eq!(text, "E   OSError: no");
    assert_eq!(mostly_failing(&report(&["failed", "passed"])), None);
}
