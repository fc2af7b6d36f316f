//! Formats a report for a model: detailed failures first, then one line for each other test. It leaves out
//! everything that differs between runs, such as durations.

mod shorten;

use std::fmt::Write;

use super::report::{
    Failure, FailureClass, Outcome, Phase, Place, TestReport, TestResult, WarningLine,
};
pub use shorten::{cut, headline, short_headline, shorten_message_to_lines, without_repeats};
use shorten::{indented, shorten_message, without_message_lines};

/// Maximum number of detailed failures.
const MAX_DETAILED: usize = 6;
/// Maximum number of further failures, and of other tests, listed in one line each.
const MAX_LISTED: usize = 30;
/// Maximum characters of a test's output, and of pytest's output.
const MAX_CAPTURED_CHARS: usize = 1200;
const MAX_PRINTED_CHARS: usize = 3000;
/// Maximum number of failures listed that are like others.
const MAX_ALIKE: usize = 10;
/// Maximum number of warnings, and characters of each.
const MAX_WARNINGS: usize = 4;
const MAX_WARNING_CHARS: usize = 200;
/// Maximum characters of the ids of parameter sets that fail alike.
const MAX_PARAMETER_CHARS: usize = 300;
/// Maximum number of frames of one failure.
const MAX_FRAMES: usize = 12;

impl Outcome {
    /// Returns whether a test with this outcome failed, or did not run.
    pub fn is_bad(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::Error | Outcome::Absent)
    }

    /// Returns the outcome in words for a model, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Error => "error",
            Outcome::Skipped => "skipped",
            Outcome::Xfailed => "xfailed",
            Outcome::Xpassed => "xpassed",
            Outcome::Absent => "did not run",
        }
    }
}

/// Formats a report.
pub fn text(report: &TestReport) -> String {
    render(report, |_| true)
}

/// Formats a report without the names of tests that passed.
pub fn without_passed(report: &TestReport) -> String {
    render(report, |test| test.outcome != Outcome::Passed)
}

/// Formats one failing test in detail.
pub fn one_failure(test: &TestResult) -> String {
    let mut out = format!("\n\n{} {}", test.outcome.as_str().to_uppercase(), test.id);
    if let Some(f) = &test.failure {
        failure(&mut out, f);
        let message = shorten_message(&f.message);
        captured(&mut out, &without_message_lines(&test.captured, &message));
    }
    out
}

fn render(report: &TestReport, is_named: fn(&TestResult) -> bool) -> String {
    let mut out = summary(report);
    if report.timed_out {
        out.push_str("\nThe deadline came before the end; what ran until then is reported.");
    }
    let (bad, good): (Vec<&TestResult>, Vec<&TestResult>) =
        report.tests.iter().partition(|test| test.outcome.is_bad());
    for error in &report.collection_errors {
        let _ = write!(out, "\n\nCOULD NOT BE COLLECTED {}", error.id);
        failure(&mut out, &error.failure);
    }
    let errors = report.collection_errors.iter();
    let mut failures: Vec<&Failure> = errors.map(|error| &error.failure).collect();
    let mut folded = vec![false; bad.len()];
    let (mut index, mut alike, mut remaining) = (0, 0, 0);
    for (at, test) in bad.iter().enumerate() {
        if folded[at] {
            continue;
        }
        let mark = test.outcome.as_str().to_uppercase();
        let failure = test.failure.as_ref();
        let likeness = failure.and_then(|f| find_likeness(f, &failures));
        let is_listed = match likeness {
            Some(_) => alike < MAX_ALIKE,
            None => index < MAX_DETAILED + MAX_LISTED,
        };
        match (failure, likeness) {
            (_, Some(_)) if !is_listed => {}
            (_, Some(Likeness::Same)) => {
                let _ = write!(out, "\n{mark} {}: as above", test.id);
            }
            (Some(f), Some(Likeness::Similar)) => {
                let _ = write!(out, "\n{mark} {}: much as above: {}", test.id, one_line(f));
            }
            (Some(f), None) if index < MAX_DETAILED => {
                out.push_str(&one_failure(test));
                failures.push(f);
            }
            (Some(f), None) if is_listed => {
                let _ = write!(out, "\n{mark} {}: {}", test.id, one_line(f));
            }
            (None, _) if is_listed => {
                let _ = write!(out, "\n{mark} {}", test.id);
                if !test.captured.is_empty() {
                    let _ = write!(out, " ({})", test.captured);
                }
            }
            _ => remaining += 1,
        }
        if is_listed {
            let others: Vec<usize> = (at + 1..bad.len())
                .filter(|other| !folded[*other] && is_other_parameter_set(test, bad[*other]))
                .collect();
            if !others.is_empty() {
                let ids = others.iter().map(|other| bad[*other].id.as_str());
                out.push_str(&more_parameter_sets(ids));
                others.iter().for_each(|other| folded[*other] = true);
            }
        }
        match likeness {
            Some(_) => alike += 1,
            None => index += 1,
        }
    }
    if let Some(more @ 1..) = alike.checked_sub(MAX_ALIKE) {
        let _ = write!(out, "\n... and {more} more that failed much as above.");
    }
    if remaining > 0 {
        let _ = write!(
            out,
            "\n... and {remaining} more that failed; run them by node id to see them."
        );
    }
    let listed_tests: Vec<&TestResult> = good.into_iter().filter(|test| is_named(test)).collect();
    if !listed_tests.is_empty() {
        out.push('\n');
    }
    for test in listed_tests.iter().take(MAX_LISTED) {
        let _ = write!(out, "\n{} {}", test.outcome.as_str(), test.id);
        if test.outcome == Outcome::Skipped && !test.captured.is_empty() {
            let _ = write!(out, " ({})", test.captured);
        }
    }
    if let Some(more @ 1..) = listed_tests.len().checked_sub(MAX_LISTED) {
        let _ = write!(out, "\n... and {more} more that did not fail");
    }
    for id in &report.not_found {
        let _ = write!(out, "\nnot found: {id}");
    }
    warnings(&mut out, &report.warnings);
    let is_empty = report.tests.is_empty() && report.collection_errors.is_empty();
    if is_empty && report.not_found.is_empty() {
        let printed = cut(report.printed.trim(), MAX_PRINTED_CHARS);
        let _ = write!(out, "\npytest printed:\n{printed}");
    }
    out
}

/// Returns whether both are the same test function with different parameters, and fail alike.
fn is_other_parameter_set(a: &TestResult, b: &TestResult) -> bool {
    let (Some((function, _)), Some((other, _))) = (a.id.split_once('['), b.id.split_once('['))
    else {
        return false;
    };
    let (Some(failure), Some(other_failure)) = (&a.failure, &b.failure) else {
        return false;
    };
    function == other && (failure == other_failure || are_alike(failure, other_failure))
}

/// Formats the ids of one test function as `3 more parameter sets fail alike: a, b, c`.
pub fn more_parameter_sets<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> String {
    let mut text = match ids.len() {
        1 => "\n1 more parameter set fails alike: ".to_owned(),
        more => format!("\n{more} more parameter sets fail alike: "),
    };
    let mut length = 0;
    for (at, id) in ids.enumerate() {
        let id = id.split_once('[').map_or(id, |(_, parameters)| parameters);
        let id = id.strip_suffix(']').unwrap_or(id);
        length += id.chars().count();
        if at > 0 {
            text.push_str(", ");
        }
        if at > 0 && length > MAX_PARAMETER_CHARS {
            text.push('…');
            break;
        }
        text.push_str(&cut(id, MAX_PARAMETER_CHARS));
    }
    text
}

/// Lists warnings from the repository's own code.
fn warnings(out: &mut String, warnings: &[WarningLine]) {
    for warning in warnings.iter().take(MAX_WARNINGS) {
        let times = match warning.count {
            1 => String::new(),
            more => format!(" ({more} times)"),
        };
        let _ = write!(
            out,
            "\nwarned at {}:{}{times}: {}: {}",
            warning.file,
            warning.line,
            warning.category,
            cut(&without_repeats(warning.message.trim()), MAX_WARNING_CHARS)
        );
    }
    if let Some(more @ 1..) = warnings.len().checked_sub(MAX_WARNINGS) {
        let _ = write!(out, "\n... and {more} more warnings");
    }
}

/// Likeness of a failure to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    Same,
    Similar,
}

/// Compares a failure with earlier ones; `None` if it is unlike all of them.
fn find_likeness(failure: &Failure, earlier: &[&Failure]) -> Option<Likeness> {
    if earlier.contains(&failure) {
        return Some(Likeness::Same);
    }
    let is_similar = earlier.iter().any(|other| are_alike(other, failure));
    is_similar.then_some(Likeness::Similar)
}

/// Returns whether two failures arose at the same line of the same file, with messages that differ only in values.
fn are_alike(a: &Failure, b: &Failure) -> bool {
    let [(first, place), (second, other)] = [a, b].map(|failure| {
        let words: Vec<&str> = headline(&failure.message).split_whitespace().collect();
        let frame = failure.frames.last();
        (words, frame.map(|frame| (&frame.file, frame.line)))
    });
    let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    a.exception == b.exception
        && place.is_some()
        && place == other
        && first.len() == second.len()
        && same * 2 >= first.len()
}

/// Formats the counts, e.g. `3 tests: 1 failed, 2 passed`.
fn summary(report: &TestReport) -> String {
    let all = [
        Outcome::Failed,
        Outcome::Error,
        Outcome::Absent,
        Outcome::Passed,
        Outcome::Skipped,
        Outcome::Xfailed,
        Outcome::Xpassed,
    ];
    let outcomes = all.map(|outcome| {
        let tests = report.tests.iter().filter(|test| test.outcome == outcome);
        (tests.count(), outcome.as_str())
    });
    let others = [
        (report.collection_errors.len(), "could not be collected"),
        (report.not_found.len(), "not found"),
    ];
    let counts = outcomes.into_iter().chain(others);
    let counts: Vec<String> = counts
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let tests = match report.tests.len() {
        0 => "No test ran".to_owned(),
        1 => "1 test".to_owned(),
        many => format!("{many} tests"),
    };
    if counts.is_empty() {
        return format!("{tests}.");
    }
    format!("{tests}: {}", counts.join(", "))
}

/// Formats the class of the exception and the first line of its message.
pub fn one_line(failure: &Failure) -> String {
    let message = short_headline(&failure.message, 200);
    format!("{}: {message}", failure.exception)
}

fn failure(out: &mut String, failure: &Failure) {
    let stand_in = failure.raised_by_test_double().map(|frame| {
        let function = &frame.function;
        format!("raised by the test's own `{function}`, called by the code under test")
    });
    let kind = match failure.class {
        FailureClass::Assertion => {
            did_not_happen(&failure.message).unwrap_or("an assertion of the test did not hold")
        }
        _ if failure.is_turned_warning() => {
            "a warning, which the project's settings turn into an error"
        }
        FailureClass::Exception => (stand_in.as_deref()).unwrap_or("raised by the code under test"),
        FailureClass::Error => "an error of the test itself, not of the code under test",
    };
    let phase = match failure.phase {
        Phase::Collect => "while collecting: ",
        Phase::Setup => "in setup: ",
        Phase::Call => "",
        Phase::Teardown => "in teardown: ",
    };
    let message = indented(&shorten_message(&failure.message), "  ");
    let _ = write!(out, "\n  {phase}{kind}\n  {}: {message}", failure.exception);
    let frames = failure.frames_of_interest();
    let skipped = frames.len().saturating_sub(MAX_FRAMES);
    // The ends of a long traceback are the most informative.
    let left_out = MAX_FRAMES / 2..MAX_FRAMES / 2 + skipped;
    for (index, frame) in frames.iter().enumerate() {
        if left_out.contains(&index) {
            if index == left_out.start {
                let _ = write!(out, "\n    ... {skipped} more frames ...");
            }
            continue;
        }
        let place = match frame.place {
            Place::Test => "test",
            Place::Source => "source",
            Place::External => "library",
        };
        let _ = write!(
            out,
            "\n    [{place}] {}:{} in {}: {}",
            frame.file, frame.line, frame.function, frame.code
        );
    }
}

/// Rewords the messages of `pytest.raises` and `pytest.warns` in plain words.
fn did_not_happen(message: &str) -> Option<&'static str> {
    if message.starts_with("DID NOT RAISE") {
        Some("an assertion of the test did not hold: no exception was raised")
    } else if message.starts_with("DID NOT WARN") {
        Some("an assertion of the test did not hold: no such warning was given")
    } else {
        None
    }
}

fn captured(out: &mut String, captured: &str) {
    if !captured.trim().is_empty() {
        let text = cut(&without_repeats(captured.trim()), MAX_CAPTURED_CHARS);
        let _ = write!(out, "\n    {}", indented(&text, "    "));
    }
}

#[cfg(test)]
mod tests;
