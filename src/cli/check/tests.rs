use super::*;
use testwright_agent::check::{FailureEvidence, RerunEvidence};
use testwright_agent::gate::{Finding, Review, ReviewVerdict, Rule};
use testwright_tools::outcomes::report::FailureClass;

fn evidence() -> CheckEvidence {
    CheckEvidence {
        findings: vec![Finding {
            rule: Rule::HoldsWithPlacebo,
            text: "it looks at the code".to_owned(),
        }],
        failing: vec![FailureEvidence {
            id: "t.py::test_it".to_owned(),
            fails: "assertion: AssertionError: assert 1 == 2".to_owned(),
            class: FailureClass::Assertion,
            exception: "AssertionError".to_owned(),
            message: "assert 1 == 2".to_owned(),
            frame: None,
            exception_in_issue: false,
            message_in_issue: false,
            code_in_issue: Vec::new(),
            issue_sentence: Some("f(1) returns 1.".to_owned()),
            files_run: 1,
            unrelated_inputs: false,
            replaced_code: Vec::new(),
            reruns: vec![RerunEvidence {
                conditions: "another hash seed".to_owned(),
                failed_again: true,
            }],
            placebo_held: Some(false),
        }],
        passing: vec!["t.py::test_other".to_owned()],
        notes: vec!["it reads the time".to_owned()],
        probability: 0.25,
        ..CheckEvidence::default()
    }
}

#[test]
fn evidence_is_shown_in_rows() {
    let check = CheckedTest {
        test: "t.patch\x1b[2J".to_owned(),
        evidence: evidence(),
    };
    insta::assert_snapshot!(render(&check, None).plain(), @r"
    not accepted t.patch\u{1b}[2J
      finding    it looks at the code
      test       t.py::test_it
      fails      assertion: AssertionError: assert 1 == 2
      issue      “f(1) returns 1.”
      reruns     another hash seed: failed again
      placebo    did not fail again
      passes     t.py::test_other (on the old code already)
      note       it reads the time
      confidence 0.25
    ");
}

#[test]
fn missing_sentence_is_reported() {
    let mut evidence = evidence();
    evidence.failing[0].issue_sentence = None;
    let expected = ("issue", "no sentence matches the failure".to_owned());
    assert!(evidence_rows(&evidence).contains(&expected));
}

#[test]
fn doubted_test_is_named_in_headline() {
    let review = Review {
        verdict: ReviewVerdict::No,
        reason: "It tests another function.".to_owned(),
        extra_requirements: Vec::new(),
    };
    let check = CheckedTest {
        test: "t.patch".to_owned(),
        evidence: CheckEvidence {
            accepted: true,
            findings: Vec::new(),
            review: Some(review),
            ..evidence()
        },
    };
    let text = render(&check, None).plain();
    assert!(text.starts_with("accepted by the gate but doubted t.patch\n"));
    assert!(text.contains("\n  reviewer   doubts it: It tests another function.\n"));
    assert!(
        render(&check, Some(0.5))
            .plain()
            .starts_with("withheld t.patch\n")
    );
}
