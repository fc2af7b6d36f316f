use super::*;
use crate::gate::ReviewVerdict;
use testwright_tools::outcomes::report::{Outcome, Phase};
use testwright_tools::tools::submission::{Change, ContributedTest};

const ISSUE: &str =
    "`truncate` cuts badly\n\nslugify('How to bake') gives 'how-to-', not 'how-to'.";

fn failure(message: &str, place: Place, function: &str) -> TestEvidence {
    TestEvidence {
        id: "tests/test_a.py::test_a".to_owned(),
        outcome: Outcome::Failed,
        phase: Phase::Call,
        class: FailureClass::Assertion,
        exception: "AssertionError".to_owned(),
        message: message.to_owned(),
        frame: Some(Frame {
            file: "a.py".to_owned(),
            line: 1,
            function: function.to_owned(),
            code: String::new(),
            place,
        }),
        missing_name: None,
        executed: vec!["slugs/slug.py".to_owned()],
        unreached: Vec::new(),
        test_double: None,
        warning_as_error: false,
    }
}

fn evidence(test: &TestEvidence) -> FailureEvidence {
    let submission = Submission {
        patch: String::new(),
        files: Vec::new(),
        contributed: vec![ContributedTest {
            id: test.id.clone(),
            change: Change::Added,
            line: 1,
            source: "def test_a():\n    assert slugify('a') == 'b'\n".to_owned(),
            replaced_code: Vec::new(),
        }],
        problems: Vec::new(),
        before: None,
        changed_before: None,
        neighbours: None,
        old: Default::default(),
        reruns: Vec::new(),
        invented_frames: Vec::new(),
    };
    let names = ["slugify", "truncate"].map(str::to_owned).to_vec();
    let definitions = BTreeMap::from([("slugs/slug.py", names)]);
    FailureEvidence::new(test, &submission, ISSUE, &definitions)
}

#[test]
fn failure_is_compared_with_issue() {
    let quoted = evidence(&failure(
        "assert 'how-to-' == 'other'\n  more",
        Place::Test,
        "test_a",
    ));
    assert!(quoted.message_in_issue && !quoted.exception_in_issue);
    assert_eq!(quoted.message, "assert 'how-to-' == 'other'");
    assert_eq!(quoted.code_in_issue, ["slugify"]);
    assert_eq!((quoted.files_run, quoted.placebo_held), (1, None));
    let raised = evidence(&failure(
        "assert 'abcd' not in 'efgh'",
        Place::Source,
        "Slug.truncate",
    ));
    assert!(!raised.message_in_issue);
    assert_eq!(raised.code_in_issue, ["slugify", "truncate"]);
}

#[test]
fn verdict_names_doubts_of_model() {
    let test = failure("assert 1 == 2", Place::Test, "test_a");
    let fix = |outcome| FixTrial {
        outcomes: vec![(test.id.clone(), outcome)],
        on_submitted_tests: true,
        ..FixTrial::default()
    };
    let review = |verdict| Review {
        verdict,
        reason: String::new(),
        extra_requirements: Vec::new(),
    };
    let mut checked = CheckEvidence {
        accepted: true,
        probability: 0.5,
        failing: vec![evidence(&test)],
        ..CheckEvidence::default()
    };
    let doubted = "accepted by the gate but doubted";
    assert_eq!(checked.verdict(Some(0.5)), "accepted");
    checked.fixes = vec![fix(Outcome::Failed)];
    assert_eq!(checked.verdict(None), doubted);
    assert_eq!(checked.verdict(Some(0.6)), "withheld");
    checked.fixes.push(fix(Outcome::Passed));
    checked.review = Some(review(ReviewVerdict::Unsure));
    assert_eq!(checked.verdict(None), "accepted");
    checked.review = Some(review(ReviewVerdict::No));
    assert_eq!(checked.verdict(None), doubted);
    checked.accepted = false;
    assert_eq!(checked.verdict(None), "not accepted");
}
