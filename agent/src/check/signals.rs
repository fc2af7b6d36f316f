//! The signals of a test: its evidence as numbers.

use testwright_tools::outcomes::report::FailureClass;

use super::evidence::{CheckEvidence, FailureEvidence};
use crate::confidence::{GateResult, Signals};
use crate::gate::Rule;

/// Marks of code in an issue.
const CODE_MARKS: [&str; 3] = ["```", ">>>", "Traceback"];
/// Minimum characters of a message to look for in the issue as a whole.
const MIN_QUOTED_LEN: usize = 8;

/// Computes the signals of a test. Most of them are shares of its failing tests, from 0 to 1.
pub(super) fn signals(evidence: &CheckEvidence, issue: &str) -> Signals {
    let failing = &evidence.failing;
    let tests = failing.len().max(1) as f64;
    let share = |has: &dyn Fn(&FailureEvidence) -> bool| {
        let matching = failing.iter().filter(|test| has(test)).count();
        matching as f64 / tests
    };
    let named_code = failing.iter().map(|test| test.code_in_issue.len());
    let named_code: usize = named_code.sum();
    let is_class = |class: FailureClass| share(&|test| test.class == class);
    let is_true = |value: bool| f64::from(u8::from(value));
    let has_code = CODE_MARKS.iter().any(|mark| issue.contains(mark));
    let is_unsound = (evidence.findings.iter()).any(|finding| finding.rule == Rule::Sound);
    let message_in_issue = |test: &FailureEvidence| {
        let has_value = test.class == FailureClass::Assertion && test.message_in_issue;
        has_value || is_quoted(&test.message, issue)
    };
    let replaces_code = |test: &FailureEvidence| !test.replaced_code.is_empty();
    let values = [
        ("assertion", is_class(FailureClass::Assertion)),
        ("error", is_class(FailureClass::Error)),
        ("message_in_issue", share(&message_in_issue)),
        ("code_in_issue", (named_code as f64 / tests).ln_1p()),
        ("issue_has_code", is_true(has_code)),
        ("unsound", is_true(is_unsound)),
        ("unrelated_inputs", share(&|test| test.unrelated_inputs)),
        ("replaces_code", share(&replaces_code)),
    ];
    Signals {
        gate: match (evidence.accepted, failing.is_empty()) {
            (true, _) => GateResult::Accepted,
            (false, false) => GateResult::Rejected,
            (false, true) => GateResult::NotFailing,
        },
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
    }
}

fn is_quoted(message: &str, issue: &str) -> bool {
    message.chars().count() >= MIN_QUOTED_LEN && issue.contains(message)
}
