use testwright_tools::tools::cover::MissedLines;
use testwright_tools::tools::submission::Change;

use super::*;

const ID: &str = "tests/test_a.py::test_a";

fn report(outcome: Outcome) -> TestReport {
    TestReport {
        tests: vec![TestResult {
            id: ID.to_owned(),
            outcome,
            failure: None,
            captured: String::new(),
            seconds: 0.01,
            executed: vec![],
        }],
        ..TestReport::default()
    }
}

fn rules(source: &str, outcome: Outcome, missed: &[MissedLines]) -> Vec<Rule> {
    let submission = Submission {
        patch: "a patch".to_owned(),
        files: vec![],
        contributed: vec![ContributedTest {
            id: ID.to_owned(),
            change: Change::Added,
            line: 1,
            source: source.to_owned(),
            replaced_code: Vec::new(),
        }],
        problems: vec![],
        before: None,
        changed_before: None,
        neighbours: None,
        old: report(outcome),
        reruns: vec![],
        invented_frames: vec![],
    };
    let covered = CoverResult {
        report: report(outcome),
        missed: missed.to_vec(),
        ..CoverResult::default()
    };
    let verdict = decide_coverage(&submission, &covered, &Ok(()));
    verdict
        .findings
        .iter()
        .map(|finding| finding.rule)
        .collect()
}

#[test]
fn coverage_test_must_pass_assert_and_run() {
    let good = "def test_a():\n    assert f(1) == 2\n";
    assert_eq!(rules(good, Outcome::Passed, &[]), []);
    assert_eq!(rules(good, Outcome::Failed, &[]), [Rule::Passes]);
    assert_eq!(rules(good, Outcome::Skipped, &[]), [Rule::Passes]);
    let idle = "def test_a():\n    f(1)\n    assert True\n";
    assert_eq!(rules(idle, Outcome::Passed, &[]), [Rule::Asserts]);
    let missed = MissedLines {
        file: "a.py".to_owned(),
        first: 3,
        last: 4,
        by: None,
    };
    assert_eq!(
        rules(good, Outcome::Passed, &[missed]),
        [Rule::RunsWantedLines]
    );
}
