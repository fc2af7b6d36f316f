#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use testwright_agent::gate::{Review, ReviewVerdict};

fn failure(id: &str, sentence: Option<&str>) -> FailureEvidence {
    let fields = json!({
        "id": id,
        "fails": "assertion: AssertionError: assert 1 == 2",
        "class": "assertion",
        "exception": "AssertionError",
        "message": "assert 1 == 2",
        "frame": null,
        "exception_in_issue": false,
        "message_in_issue": false,
        "code_in_issue": [],
        "issue_sentence": sentence,
        "files_run": 1,
        "reruns": [],
        "placebo_held": true,
    });
    serde_json::from_value(fields).unwrap()
}

#[test]
fn text_has_sentences_and_confidence() {
    let mut checked = CheckedTest {
        text: "The checks of the submission passed:".to_owned(),
        evidence: CheckEvidence {
            accepted: true,
            failing: vec![
                failure("t.py::test_a", Some("f(1) returns 2.")),
                failure("t.py::test_b", Some("f(1) returns 2.")),
                failure("t.py::test_c", None),
            ],
            probability: 0.76,
            ..CheckEvidence::default()
        },
    };
    let expected = "The checks of the submission passed:\nIssue: “f(1) returns 2.”\n\
                    Issue: no sentence matches the failure\nConfidence: 0.76";
    assert_eq!(text_with_evidence(&checked, true), expected);
    assert!(!text_with_evidence(&checked, false).contains("Issue:"));
    checked.evidence.review = Some(Review {
        verdict: ReviewVerdict::No,
        reason: String::new(),
        extra_requirements: Vec::new(),
    });
    let doubted = text_with_evidence(&checked, true);
    assert!(doubted.contains("\nThe gate accepts the test, but"));
}
