//! Classifies a run of a case.

use testwright_tools::cases::CaseAnswer;
use testwright_tools::outcomes::report::{
    Failure, Outcome, TestReport, TestResult, belongs_to_test,
};

use super::CaseOutcome;

/// Maximum characters of a message.
const MAX_MESSAGE_CHARS: usize = 2_000;
/// Exception name recorded for a process that exited on its own.
const PROCESS: &str = "process";

pub(super) fn classify(answer: &CaseAnswer) -> CaseOutcome {
    let report = &answer.report;
    if let Some(why) = &answer.refused {
        return CaseOutcome::Error {
            message: why.clone(),
        };
    }
    if let Some(name) = &answer.names_recorder {
        return crashed(format!(
            "the file uses `{name}`, which belongs to the test recorder"
        ));
    }
    if report.timed_out {
        return CaseOutcome::TimedOut;
    }
    if let Some(what) = &report.tampered {
        return crashed(format!("the outcome cannot be trusted: {what}"));
    }
    if report.contradicted {
        return crashed("the recorded outcome contradicts the exit status of the process");
    }
    not_collected(report)
        .or_else(|| worst(report))
        .unwrap_or_else(|| classify_end(answer))
}

/// Classifies a run whose records show no failure.
fn classify_end(answer: &CaseAnswer) -> CaseOutcome {
    let report = &answer.report;
    if !answer.is_whole {
        let how = match report.exit_code {
            Some(code) => format!("with exit status {code}"),
            None => "by a signal".to_owned(),
        };
        return crashed(format!("the process ended {how} before pytest did"));
    }
    if report.tests.is_empty() {
        return not_run("the file contains no tests");
    }
    CaseOutcome::Passed
}

fn not_collected(report: &TestReport) -> Option<CaseOutcome> {
    if let Some(error) = report.collection_errors.first() {
        return Some(of_failure(&error.id, &error.failure, true));
    }
    let missing = report.not_found.first()?;
    Some(not_run(format!("no test matches {missing}")))
}

/// Returns the most informative of the tests that did not pass.
fn worst(report: &TestReport) -> Option<CaseOutcome> {
    let rank = |test: &&TestResult| match test.outcome {
        Outcome::Failed => 0,
        Outcome::Error => 1,
        Outcome::Absent => 2,
        _ => 3,
    };
    let others = report.tests.iter();
    let others = others
        .filter(|test| test.outcome != Outcome::Passed)
        .filter(|test| !is_skipped_set(report, test));
    let test = others.min_by_key(rank)?;
    let is_error = test.outcome == Outcome::Error;
    Some(match (test.outcome, &test.failure) {
        (Outcome::Failed | Outcome::Error | Outcome::Absent, Some(failure)) => {
            of_failure(&test.id, failure, is_error)
        }
        (Outcome::Absent, None) => not_run(format!("{} did not run", test.id)),
        (Outcome::Xfailed, _) => not_run(format!("{} is expected to fail, and does", test.id)),
        (Outcome::Xpassed, _) => not_run(format!("{} is expected to fail, and passes", test.id)),
        (Outcome::Skipped, _) => {
            let why = Some(test.captured.trim()).filter(|why| !why.is_empty());
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            not_run(cut(&format!("{} was skipped{why}", test.id)))
        }
        (outcome, _) => not_run(format!("{}: {outcome:?}", test.id)),
    })
}

/// Returns whether the test is a skipped parameter set of a test that passes with others.
fn is_skipped_set(report: &TestReport, test: &TestResult) -> bool {
    let Some((name, _)) = test.id.split_once('[') else {
        return false;
    };
    let mut others = report.tests.iter();
    test.outcome == Outcome::Skipped
        && others.any(|other| other.outcome == Outcome::Passed && belongs_to_test(&other.id, name))
}

fn of_failure(id: &str, failure: &Failure, is_error: bool) -> CaseOutcome {
    if failure.exception == PROCESS {
        return crashed(cut(&failure.message));
    }
    let message = cut(&format!("{id}: {}: {}", failure.exception, failure.message));
    match is_error {
        true => CaseOutcome::Error { message },
        false => CaseOutcome::Failed { message },
    }
}

pub(super) fn crashed(reason: impl Into<String>) -> CaseOutcome {
    CaseOutcome::Crashed {
        reason: reason.into(),
    }
}

fn not_run(reason: impl Into<String>) -> CaseOutcome {
    CaseOutcome::NotRun {
        reason: reason.into(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}
