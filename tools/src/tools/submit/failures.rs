//! Selects the contributed tests that failed.

use crate::outcomes::report::{TestReport, TestResult, belongs_to_test};
use crate::tools::contribution;
use crate::tools::run_pytest::failing;
use crate::tools::submission::ContributedTest;

pub(super) fn is_contributed(id: &str, contributed: &[ContributedTest]) -> bool {
    contribution::present(contributed).any(|test| belongs_to_test(id, &test.id))
}

/// Returns the contributed tests that failed.
pub(super) fn contributed_failures<'a>(
    old: &'a TestReport,
    contributed: &'a [ContributedTest],
) -> impl Iterator<Item = &'a TestResult> {
    failing(old).filter(|test| is_contributed(&test.id, contributed))
}

/// Returns the ids to rerun: failing contributed tests, and those in modules that could not be collected.
pub(super) fn failing_ids(old: &TestReport, contributed: &[ContributedTest]) -> Vec<String> {
    let mut ids: Vec<String> = contributed_failures(old, contributed)
        .map(|test| test.id.clone())
        .collect();
    for error in &old.collection_errors {
        for test in contribution::present(contributed) {
            if is_in_module(&test.id, &error.id) && !ids.contains(&test.id) {
                ids.push(test.id.clone());
            }
        }
    }
    ids
}

/// Returns whether a module or package, by its node id, contains a contributed test.
pub(super) fn is_contributed_in(module: &str, contributed: &[ContributedTest]) -> bool {
    contribution::present(contributed).any(|test| is_in_module(&test.id, module))
}

fn is_in_module(id: &str, module: &str) -> bool {
    let inside = id.strip_prefix(module);
    inside.is_some_and(|rest| rest.starts_with("::"))
}
