//! Rules about the reruns of the failing tests.

use testwright_tools::outcomes::report::TestReport;
use testwright_tools::tools::submission::{Rerun, Submission};

use super::case::{Case, failed, is_in_module};
use super::evidence::TestEvidence;

/// Checks that the tests fail again under other conditions.
pub(super) fn fails_again(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for test in case.failing {
        for (rerun, failed_again) in failed_again(case.submission, &test.id) {
            if !failed_again {
                wrong(format!(
                    "{} is flaky: it failed, but not in a rerun ({}).",
                    test.id,
                    rerun.conditions()
                ));
            }
        }
    }
    if !case.failing.is_empty() && plain_reruns(case.submission).next().is_none() {
        let text = "the failing tests were not run again, so nothing is known of their stability.";
        wrong(text.to_owned());
    }
}

/// Checks that the tests fail with a placebo in the code under test. A flaky test may pass for another reason.
pub(super) fn holds_with_placebo(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for test in case.failing {
        let is_stable = failed_again(case.submission, &test.id).all(|(_, failed)| failed);
        if is_stable && holds_placebo(case.submission, &test.id) == Some(false) {
            wrong(format!(
                "{} passes once the code is changed without changing its meaning (a comment, a blank line, another name of \
                 a local variable): it looks at the code instead of running it. Test what the code does.",
                test.id
            ));
        }
    }
}

/// Returns the reruns on the unchanged code, and whether the test failed in each.
pub fn failed_again<'a>(
    submission: &'a Submission,
    id: &'a str,
) -> impl Iterator<Item = (&'a Rerun, bool)> {
    plain_reruns(submission).map(move |rerun| (rerun, fails_in(&rerun.report, id)))
}

/// Returns whether the test failed with a placebo in the code under test; `None` if no such run was completed.
pub fn holds_placebo(submission: &Submission, id: &str) -> Option<bool> {
    let with_placebo = submission.reruns.iter().find(|rerun| rerun.has_placebo())?;
    let report = &with_placebo.report;
    let is_complete = !report.timed_out && report.runner_error.is_none();
    is_complete.then(|| fails_in(report, id))
}

/// Returns how many of the tests failed again in each rerun, as lines for people.
pub fn describe_reruns(submission: &Submission, tests: &[TestEvidence]) -> Vec<String> {
    let describe = |rerun: &Rerun| {
        let again = (tests.iter()).filter(|test| fails_in(&rerun.report, &test.id));
        format!("{}: {} failed again", rerun.conditions(), again.count())
    };
    submission.reruns.iter().map(describe).collect()
}

/// Returns the reruns on the unchanged code.
fn plain_reruns(submission: &Submission) -> impl Iterator<Item = &Rerun> {
    let reruns = submission.reruns.iter();
    reruns.filter(|rerun| !rerun.has_placebo())
}

fn fails_in(report: &TestReport, id: &str) -> bool {
    let (mut tests, mut errors) = (report.tests.iter(), report.collection_errors.iter());
    tests.any(|test| test.id == id && failed(test)) || errors.any(|error| is_in_module(id, error))
}

#[cfg(test)]
mod tests {
    use testwright_tools::outcomes::report::{
        CollectionError, Failure, FailureClass, Outcome, Phase, TestResult,
    };

    use super::super::rules;
    use super::super::tests::sound;
    use super::*;

    #[test]
    fn uncollected_tests_are_counted_once() {
        let mut submission = sound();
        let id = submission.contributed[0].id.clone();
        let failure = Failure {
            phase: Phase::Collect,
            class: FailureClass::Error,
            exception: "ImportError".to_owned(),
            message: "cannot import name 'keep_digits'".to_owned(),
            frames: Vec::new(),
            missing_name: Some("keep_digits".to_owned()),
        };
        // A run of node ids reports an error for each test and one for the module.
        let report = TestReport {
            tests: vec![TestResult {
                failure: Some(failure.clone()),
                ..TestResult::new(&id, Outcome::Error)
            }],
            collection_errors: vec![CollectionError {
                id: "tests/test_slug.py".to_owned(),
                failure,
            }],
            ..TestReport::default()
        };
        submission.old = report.clone();
        submission.reruns.truncate(1);
        submission.reruns[0].report = report;
        let failing = rules::failing(&submission);
        assert_eq!(failing.len(), 1);
        assert_eq!(
            describe_reruns(&submission, &failing),
            ["another hash seed and user: 1 failed again"]
        );
    }
}
