//! The signals of a test: its evidence as numbers.

use testwright_tools::outcomes::report::{FailureClass, Place, is_named_in};
use testwright_tools::python::asserted_values;

use super::evidence::{CheckEvidence, FailureEvidence};
use crate::confidence::{GateResult, Signals};
use crate::gate::Rule;

/// Computes the signals of a test. Shares are of its failing tests, and counts are logarithms.
pub(super) fn signals(evidence: &CheckEvidence, issue: &str) -> Signals {
    let failing = &evidence.failing;
    let share = |has: &dyn Fn(&FailureEvidence) -> bool| {
        let matching = failing.iter().filter(|test| has(test)).count();
        matching as f64 / failing.len().max(1) as f64
    };
    let is_assertion = |test: &FailureEvidence| test.class == FailureClass::Assertion;
    let is_in_source = |test: &FailureEvidence| {
        let frame = test.frame.as_ref();
        frame.is_some_and(|frame| frame.place == Place::Source)
    };
    let has_finding = |is_counted: &dyn Fn(Rule) -> bool| {
        let mut findings = evidence.findings.iter();
        f64::from(u8::from(findings.any(|finding| is_counted(finding.rule))))
    };
    let added = added_lines(&evidence.patch);
    let values = asserted_values(&added);
    let values_in_issue = values.iter().filter(|value| is_value_in(value, issue));
    let values_in_issue = values_in_issue.count();
    let values = [
        ("assertion", share(&is_assertion)),
        (
            "raised_in_code",
            share(&|test| !is_assertion(test) && is_in_source(test)),
        ),
        (
            "exception_in_issue",
            share(&|test| !is_assertion(test) && test.exception_in_issue),
        ),
        ("message_in_issue", share(&|test| test.message_in_issue)),
        (
            "code_in_issue",
            share(&|test| !test.code_in_issue.is_empty()),
        ),
        (
            "values_in_issue",
            match values.len() {
                0 => 0.5,
                all => values_in_issue as f64 / all as f64,
            },
        ),
        ("values_beyond", count(values.len() - values_in_issue)),
        ("lines", count(added.lines().count())),
        ("failing", count(failing.len())),
        ("passing", count(evidence.passing.len())),
        ("files_run", {
            let all: usize = failing.iter().map(|test| test.files_run).sum();
            count(all / failing.len().max(1))
        }),
        ("unreached", share(&|test| test.unreached > 0)),
        ("unsound", has_finding(&|rule| rule == Rule::Sound)),
        ("other_finding", has_finding(&|rule| rule != Rule::Sound)),
        ("unrelated_inputs", share(&|test| test.unrelated_inputs)),
        (
            "replaces_code",
            share(&|test| !test.replaced_code.is_empty()),
        ),
    ];
    Signals {
        gate: match (evidence.accepted, failing.is_empty()) {
            (true, _) => GateResult::Accepted,
            (false, false) => GateResult::Rejected,
            (false, true) => GateResult::NotFailing,
        },
        values: values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

/// Returns the logarithm of one more than a number.
fn count(number: usize) -> f64 {
    (number as f64).ln_1p()
}

fn added_lines(patch: &str) -> String {
    let added = patch.lines().filter(|line| !line.starts_with("+++"));
    let added = added.filter_map(|line| line.strip_prefix('+'));
    added.map(|line| format!("{line}\n")).collect()
}

fn is_value_in(value: &str, issue: &str) -> bool {
    match value.chars().all(|letter| letter.is_ascii_digit()) {
        true => is_named_in(value, issue),
        false => issue.contains(value),
    }
}
