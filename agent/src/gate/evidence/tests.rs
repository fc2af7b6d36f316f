use super::*;

fn evidence(fixes: &[(Option<usize>, Outcome)], review: Option<Review>) -> Evidence {
    let id = "t.py::test_a".to_owned();
    let fixes = fixes.iter().map(|(origin, outcome)| FixTrial {
        outcomes: vec![(id.clone(), *outcome)],
        on_submitted_tests: true,
        origin: *origin,
        ..FixTrial::default()
    });
    Evidence {
        fixes: fixes.collect(),
        tests: vec![TestEvidence {
            id: id.clone(),
            outcome: Outcome::Failed,
            phase: Phase::Call,
            class: FailureClass::Assertion,
            exception: "AssertionError".to_owned(),
            message: String::new(),
            frame: None,
            missing_name: None,
            executed: Vec::new(),
            unreached: Vec::new(),
            test_double: None,
            warning_as_error: false,
        }],
        review,
        ..Evidence::default()
    }
}

fn review(verdict: ReviewVerdict, extra_requirements: &[&str]) -> Option<Review> {
    Some(Review {
        verdict,
        reason: String::new(),
        extra_requirements: extra_requirements
            .iter()
            .map(|line| (*line).to_owned())
            .collect(),
    })
}

#[test]
fn variants_of_fix_are_one_check() {
    use Outcome::{Failed, Passed};
    let variants = [(Some(4), Failed), (Some(4), Passed), (Some(4), Failed)];
    let card = evidence(&variants, None);
    let counts = |card: &Evidence| {
        let checks = card.model_checks();
        (checks.fixes_held, checks.fixes_failed)
    };
    assert_eq!(counts(&card), (1, 0));
    assert_eq!(card.doubts(), ["no reviewer read it"]);
    // Fixes of different or unknown calls are separate checks.
    let others = [(Some(4), Passed), (Some(5), Failed)];
    assert_eq!(counts(&evidence(&others, None)), (1, 1));
    let unknown = [(None, Passed), (None, Failed), (None, Failed)];
    assert_eq!(counts(&evidence(&unknown, None)), (1, 2));
}

#[test]
fn beyond_issue_is_a_doubt() {
    let one = [(Some(0), Outcome::Passed)];
    let card = evidence(&one, review(ReviewVerdict::Yes, &["the order"]));
    assert_eq!(card.model_checks().opinion, Some(Opinion::Beyond));
    assert_eq!(
        card.doubts(),
        ["the reviewer finds that it asks for more than the issue does"]
    );
}

#[test]
fn few_checks_are_a_doubt() {
    let one = [(Some(0), Outcome::Passed)];
    let card = evidence(&one, review(ReviewVerdict::Yes, &[]));
    assert!(card.is_checked() && !evidence(&[], None).is_checked());
    assert_eq!(
        card.doubts(),
        ["nothing speaks against it, but only 2 checks were made"]
    );
}
