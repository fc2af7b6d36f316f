//! Notes on what failing tests read although no behaviour depends on it.

use testwright_tools::outcomes::report::belongs_to_test;
use testwright_tools::python;
use testwright_tools::tools::submission::{Change, Submission};

use super::TestEvidence;

/// Returns a note for each failing contributed test that reads such a thing.
pub(super) fn notes(submission: &Submission, failing: &[TestEvidence]) -> Vec<String> {
    let tests = submission.contributed.iter();
    tests
        .filter(|test| test.change != Change::Deleted)
        .filter(|test| {
            let mut failing = failing.iter();
            failing.any(|failing| belongs_to_test(&failing.id, &test.id))
        })
        .filter_map(|test| {
            let inputs = python::unrelated_inputs(&test.source);
            (!inputs.is_empty()).then(|| {
                format!(
                    "{} reads {}: no behaviour that the issue describes depends on that",
                    test.id,
                    inputs.join(", ")
                )
            })
        })
        .collect()
}
