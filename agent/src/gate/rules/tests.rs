#![allow(clippy::unwrap_used)]

use super::super::tests::sound;
use super::super::{Verdict, decide};
use super::*;

/// Returns the gate's verdict on a test with this result.
fn verdict_on(change: impl FnOnce(&mut TestResult)) -> Verdict {
    let mut submission = sound();
    change(&mut submission.old.tests[1]);
    decide(&submission, "", &Ok(()))
}

#[test]
fn advice_depends_on_phase_of_error() {
    let advice = |outcome: Outcome, phase: Phase| {
        let verdict = verdict_on(|test| {
            test.outcome = outcome;
            let failure = test.failure.as_mut().unwrap();
            failure.class = FailureClass::Error;
            failure.phase = phase;
        });
        assert_eq!(verdict.findings.len(), 1);
        verdict.findings[0].text.clone()
    };
    for (outcome, phase, expected) in [
        (Outcome::Failed, Phase::Call, "assert on it explicitly."),
        (Outcome::Error, Phase::Setup, "run that code in the test."),
        (
            Outcome::Absent,
            Phase::Call,
            "it did not end in time, or ended the whole run. If that is what the issue shows, run the code in a \
                 child process with a timeout, and assert on how that ends.",
        ),
    ] {
        let text = advice(outcome, phase);
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn reason_of_skipped_test_is_quoted() {
    let text = |outcome: Outcome| {
        let verdict = verdict_on(|test| {
            test.outcome = outcome;
            test.failure = None;
            "needs numpy".clone_into(&mut test.captured);
        });
        verdict.findings[0].text.clone()
    };
    assert!(text(Outcome::Skipped).contains("test_digits is skipped (needs numpy)."));
    // The run ended in an earlier test.
    assert!(text(Outcome::Absent).starts_with("pytest did not run the contributed tests"));
}
