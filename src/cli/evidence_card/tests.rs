use super::*;
use testwright_agent::gate::{FixTrial, Review, ReviewVerdict, TestEvidence};
use testwright_tools::outcomes::report::{FailureClass, Outcome as TestOutcome, Phase};

#[test]
fn card_shows_evidence_of_accepted_test() {
    let outcome = Outcome::Accepted {
        patch: "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\x1b[2J\n".into(),
        evidence: Box::new(Evidence {
            tests: vec![TestEvidence {
                id: "t.py::test_it".into(),
                outcome: TestOutcome::Failed,
                phase: Phase::Call,
                class: FailureClass::Assertion,
                exception: "AssertionError".into(),
                message: "assert 1 == 2\n  more".into(),
                frame: None,
                missing_name: None,
                executed: vec!["a.py".into()],
                unreached: vec![(7, 7), (9, 12)],
                test_double: None,
                warning_as_error: false,
            }],
            issue_sentence: Some("f(1) returns 1.".into()),
            reruns: vec!["another hash seed: 1 failed again".into()],
            fixes: vec![FixTrial {
                outcomes: vec![("t.py::test_it".into(), TestOutcome::Passed)],
                on_submitted_tests: true,
                breaks: vec!["t.py::test_old".into()],
                ..FixTrial::default()
            }],
            review: Some(Review {
                verdict: ReviewVerdict::Unsure,
                reason: "Hard to say.".into(),
                extra_requirements: vec!["the order of keys".into()],
            }),
            python: Some("3.11 (the issue names 3.14)".into()),
            steps: 7,
            prompt_tokens: 900,
            cached_tokens: 450,
            completion_tokens: 100,
            dollars: Some(0.0123),
            seconds: 4.25,
            ..Evidence::default()
        }),
    };
    insta::assert_snapshot!(render(&outcome).plain());
}
