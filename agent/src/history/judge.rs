//! Compares a test run with the failures for which the tests were accepted.

use testwright_tools::outcomes::covers;
use testwright_tools::outcomes::report::{
    Failure, FailureClass, Frame, Outcome, Place, TestReport,
};

use super::answer::{Answer, Verdict};
use super::placement::Placement;
use crate::gate::TestEvidence;

/// Maximum characters of a message in a reason.
const MAX_MESSAGE_LEN: usize = 160;

/// Meaning of the outcome of one accepted test.
enum Conclusion {
    /// Failure that equals the accepted one.
    Failure(String),
    Pass,
    /// Reason why it shows nothing.
    Unclear(String),
}

/// Returns the verdict of one run of the accepted tests.
pub(super) fn judge(report: &TestReport, tests: &[TestEvidence], placement: &Placement) -> Answer {
    if report.timed_out {
        return Answer::cannot_tell_yet("the tests took too long");
    }
    if let Some(reason) = reason_to_distrust(report) {
        return Answer::cannot_tell(reason);
    }
    let (mut failures, mut passes) = (Vec::new(), 0);
    for test in tests {
        match conclude(report, test, &placement.id(&test.id)) {
            Conclusion::Failure(failure) => failures.push(failure),
            Conclusion::Pass => passes += 1,
            Conclusion::Unclear(reason) => return Answer::cannot_tell(reason),
        }
    }
    match failures.into_iter().next() {
        None => Answer::new(Verdict::Passes, ""),
        Some(reason) if passes == 0 => Answer::new(Verdict::Fails, reason),
        Some(failure) => {
            let all = tests.len();
            Answer::cannot_tell(format!("{passes} of {all} tests pass: {failure}"))
        }
    }
}

/// Returns why the outcomes of a run say nothing about the code.
fn reason_to_distrust(report: &TestReport) -> Option<String> {
    if let Some(code) = &report.tampered {
        return Some(format!("code replaced what decides outcomes: {code}"));
    }
    if report.contradicted {
        return Some("the outcomes contradict the exit status of the test process".to_owned());
    }
    let error = report.runner_error.as_ref()?;
    Some(format!("the test runner failed: {}", first_line(error)))
}

fn conclude(report: &TestReport, test: &TestEvidence, id: &str) -> Conclusion {
    let result = report.tests.iter().find(|result| result.id == id);
    let mut broken = report.collection_errors.iter();
    let broken = broken.find(|error| covers(&error.id, id));
    let failure = match (result, broken) {
        (Some(result), _) => match result.outcome {
            Outcome::Passed => return Conclusion::Pass,
            Outcome::Failed | Outcome::Error => result.failure.as_ref(),
            outcome => return Conclusion::Unclear(without_outcome(outcome, &result.captured)),
        },
        (None, Some(error)) => Some(&error.failure),
        (None, None) => return Conclusion::Unclear("the test was not found".to_owned()),
    };
    match failure {
        Some(failure) if is_accepted_failure(test, failure) => {
            Conclusion::Failure(describe(failure))
        }
        Some(failure) if broken.is_some() => Conclusion::Unclear(format!(
            "the test cannot be imported: {}",
            describe(failure)
        )),
        Some(failure) => Conclusion::Unclear(format!("another failure: {}", describe(failure))),
        None => Conclusion::Unclear("the test failed without a traceback".to_owned()),
    }
}

fn without_outcome(outcome: Outcome, captured: &str) -> String {
    let outcome = match outcome {
        Outcome::Skipped => "was skipped",
        Outcome::Xfailed => "failed as its mark expects",
        Outcome::Xpassed => "passed although its mark expects a failure",
        _ => "did not run",
    };
    match first_line(captured) {
        reason if reason.is_empty() => format!("the test {outcome}"),
        reason => format!("the test {outcome}: {reason}"),
    }
}

/// Returns whether a failure is the one for which the test was accepted.
///
/// Phase, class and exception must be equal. An assertion must also be in the same line of code, or have the same message
/// where versions of Python report other lines. Any other exception needs the same message, or must arise in the same
/// function of the code under test. Line numbers and files may differ.
fn is_accepted_failure(test: &TestEvidence, failure: &Failure) -> bool {
    if test.phase != failure.phase
        || test.class != failure.class
        || test.exception != failure.exception
        || test.missing_name != failure.missing_name
    {
        return false;
    }
    let is_same_message = first_line(&test.message) == first_line(&failure.message);
    match (test.class, &test.frame, failure.origin()) {
        // Without its source, nothing is known about the line.
        (FailureClass::Assertion, Some(accepted), Some(frame)) if !accepted.code.is_empty() => {
            accepted.code == frame.code
                || is_same_message
                    && (misses_exception(&test.message)
                        || [accepted, frame].iter().any(|f| begins_statement(&f.code)))
        }
        (FailureClass::Exception, Some(accepted), Some(frame)) => {
            is_same_message || is_same_function(accepted, frame)
        }
        _ => is_same_message,
    }
}

/// Returns whether a message says that a `with` block did not raise or warn. Before 3.10, Python reports this in the last
/// line of the block, and later in the first.
fn misses_exception(message: &str) -> bool {
    let line = first_line(message);
    (["DID NOT RAISE", "DID NOT WARN"].iter()).any(|words| line.contains(words))
        || ([" not raised", " not triggered"].iter()).any(|end| line.ends_with(end))
}

/// Returns whether a statement goes on after this line. Before 3.8, Python reports such a call in its last line.
fn begins_statement(code: &str) -> bool {
    code.ends_with(['(', '[', '{', ','])
}

fn is_same_function(accepted: &Frame, frame: &Frame) -> bool {
    // Names are qualified only on Python 3.11 and later.
    let name = |frame: &Frame| frame.function.rsplit('.').next().map(str::to_owned);
    accepted.place == Place::Source && frame.place == Place::Source && name(accepted) == name(frame)
}

/// Formats a failure as `EXCEPTION: MESSAGE`.
fn describe(failure: &Failure) -> String {
    match first_line(&failure.message) {
        message if message.is_empty() => failure.exception.clone(),
        message => format!("{}: {message}", failure.exception),
    }
}

/// Returns the first line of a message, cut.
pub(super) fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(MAX_MESSAGE_LEN).collect()
}

#[cfg(test)]
mod tests;
