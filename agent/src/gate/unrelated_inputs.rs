//! Notes on what failing tests read although no behaviour depends on it, and on code that they replace.

use testwright_tools::outcomes::report::belongs_to_test;
use testwright_tools::python;
use testwright_tools::tools::submission::Submission;

use super::TestEvidence;
use super::case::contributed;

/// Returns notes for each failing contributed test that reads such a thing or replaces code.
pub(super) fn notes(submission: &Submission, failing: &[TestEvidence]) -> Vec<String> {
    let failing_tests = contributed(submission).filter(|test| {
        let mut failing = failing.iter();
        failing.any(|failing| belongs_to_test(&failing.id, &test.id))
    });
    let mut notes = Vec::new();
    for test in failing_tests {
        let inputs = python::unrelated_inputs(&test.source);
        if !inputs.is_empty() {
            notes.push(format!(
                "{} reads {}: no behaviour that the issue describes depends on that",
                test.id,
                inputs.join(", ")
            ));
        }
        if !test.replaced_code.is_empty() {
            notes.push(format!(
                "{} replaces {}: make sure that this is not what makes it fail",
                test.id,
                test.replaced_code.join(", ")
            ));
        }
    }
    notes
}
