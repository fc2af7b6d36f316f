//! Rules about the reruns of the failing tests.

use testwright_tools::outcomes::report::TestReport;
use testwright_tools::tools::submission::Rerun;

use super::case::{Case, failed};

/// Checks that the tests fail again under other conditions.
pub(super) fn fails_again(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for test in case.failing {
        for rerun in plain_reruns(case) {
            if !fails_in(&rerun.report, &test.id) {
                wrong(format!(
                    "{} is flaky: it failed, but not in a rerun ({}).",
                    test.id,
                    rerun.conditions()
                ));
            }
        }
    }
    if !case.failing.is_empty() && plain_reruns(case).next().is_none() {
        wrong(
            "the failing tests were not run again, so nothing is known of their stability."
                .to_owned(),
        );
    }
}

/// Checks that the tests fail with a placebo in the code under test. A flaky test may pass for another reason.
pub(super) fn holds_with_placebo(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    let mut reruns = case.submission.reruns.iter();
    let Some(with_placebo) = reruns.find(|rerun| rerun.has_placebo()) else {
        return;
    };
    let report = &with_placebo.report;
    if report.timed_out || report.runner_error.is_some() {
        return;
    }
    for test in case.failing {
        let is_stable = plain_reruns(case).all(|rerun| fails_in(&rerun.report, &test.id));
        if is_stable && !fails_in(report, &test.id) {
            wrong(format!(
                "{} passes once the code is changed without changing its meaning (a comment, a blank line, another name of \
                 a local variable): it looks at the code instead of running it. Test what the code does.",
                test.id
            ));
        }
    }
}

/// Returns the reruns on the unchanged code.
fn plain_reruns<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Rerun> {
    let reruns = case.submission.reruns.iter();
    reruns.filter(|rerun| !rerun.has_placebo())
}

fn fails_in(report: &TestReport, id: &str) -> bool {
    report
        .tests
        .iter()
        .any(|test| test.id == id && failed(test))
        || report.collection_errors.iter().any(|error| {
            id.strip_prefix(error.id.as_str())
                .is_some_and(|rest| rest.starts_with("::"))
        })
}
