//! A report as a model reads it: failures first and at length, the rest in one line each, and nothing that
//! differs from run to run (no durations).

mod shorten;

use std::fmt::Write;

use super::report::{Failure, Outcome, Place, Report, TestResult, WarningLine};
use shorten::{beside, fitted, indented};
pub use shorten::{cut, fitted_in, without_repeats};

/// Failures told at length.
const DETAILED: usize = 6;
/// Further failures, and tests that did not fail, named in one line each.
const LISTED: usize = 30;
/// Characters of what a test printed, and of what pytest printed.
const CAPTURED: usize = 1200;
const PRINTED: usize = 3000;
/// Warnings named, and characters of one.
const WARNINGS: usize = 4;
const WARNING: usize = 200;
/// Frames shown of one failure.
const FRAMES: usize = 12;

impl Outcome {
    pub fn word(self) -> &'static str {
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

/// The text of a report.
pub fn text(report: &Report) -> String {
    render(report, |_| true)
}

/// The text of a report without the names of tests that passed.
pub fn without_passed(report: &Report) -> String {
    render(report, |test| test.outcome != Outcome::Passed)
}

/// One failing test at length.
pub fn one_failure(test: &TestResult) -> String {
    let mut out = format!("\n\n{} {}", test.outcome.word().to_uppercase(), test.id);
    if let Some(f) = &test.failure {
        failure(&mut out, f);
        captured(&mut out, &beside(&test.captured, &fitted(&f.message)));
    }
    out
}

fn render(report: &Report, is_named: fn(&TestResult) -> bool) -> String {
    let mut out = summary(report);
    if report.timed_out {
        out.push_str("\nThe deadline came before the end; what ran until then is reported.");
    }
    let (bad, good): (Vec<&TestResult>, Vec<&TestResult>) =
        report.tests.iter().partition(|test| is_bad(test));
    for error in &report.collection_errors {
        let _ = write!(out, "\n\nCOULD NOT BE COLLECTED {}", error.id);
        failure(&mut out, &error.failure);
    }
    let mut failures: Vec<&Failure> = report
        .collection_errors
        .iter()
        .map(|e| &e.failure)
        .collect();
    for (index, test) in bad.iter().enumerate() {
        let mark = test.outcome.word().to_uppercase();
        match &test.failure {
            Some(f) if failures.contains(&f) => {
                let _ = write!(out, "\n{mark} {}: as above", test.id);
            }
            Some(f) if failures.iter().any(|other| are_alike(other, f)) => {
                let _ = write!(out, "\n{mark} {}: much as above: {}", test.id, one_line(f));
            }
            Some(f) if index < DETAILED => {
                out.push_str(&one_failure(test));
                failures.push(f);
            }
            Some(f) if index < DETAILED + LISTED => {
                let _ = write!(out, "\n{mark} {}: {}", test.id, one_line(f));
            }
            None if index < DETAILED + LISTED => {
                let _ = write!(out, "\n{mark} {}", test.id);
                if !test.captured.is_empty() {
                    let _ = write!(out, " ({})", test.captured);
                }
            }
            _ => {}
        }
    }
    let rest = bad.len().saturating_sub(DETAILED + LISTED);
    if rest > 0 {
        let _ = write!(
            out,
            "\n... and {rest} more that failed; run them by node id to see them."
        );
    }
    let named: Vec<&TestResult> = good.into_iter().filter(|test| is_named(test)).collect();
    if !named.is_empty() {
        out.push('\n');
    }
    for test in named.iter().take(LISTED) {
        let _ = write!(out, "\n{} {}", test.outcome.word(), test.id);
        if test.outcome == Outcome::Skipped && !test.captured.is_empty() {
            let _ = write!(out, " ({})", test.captured);
        }
    }
    if named.len() > LISTED {
        let _ = write!(
            out,
            "\n... and {} more that did not fail",
            named.len() - LISTED
        );
    }
    for id in &report.not_found {
        let _ = write!(out, "\nnot found: {id}");
    }
    warnings(&mut out, &report.warnings);
    if report.tests.is_empty() && report.collection_errors.is_empty() && report.not_found.is_empty()
    {
        let _ = write!(
            out,
            "\npytest printed:\n{}",
            cut(report.printed.trim(), PRINTED)
        );
    }
    out
}

/// What the repository's own code warned of.
fn warnings(out: &mut String, warnings: &[WarningLine]) {
    for warning in warnings.iter().take(WARNINGS) {
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
            cut(&without_repeats(warning.message.trim()), WARNING)
        );
    }
    if let Some(more @ 1..) = warnings.len().checked_sub(WARNINGS) {
        let _ = write!(out, "\n... and {more} more warnings");
    }
}

/// At the same line of the same file, by messages that differ in values alone.
fn are_alike(a: &Failure, b: &Failure) -> bool {
    let place = |failure: &Failure| {
        let frame = failure.frames.last();
        frame.map(|frame| (frame.file.clone(), frame.line))
    };
    let words = |failure: &Failure| {
        let first = failure.message.lines().next().unwrap_or_default();
        first
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (first, second) = (words(a), words(b));
    let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    a.exception == b.exception
        && place(a).is_some()
        && place(a) == place(b)
        && first.len() == second.len()
        && same * 2 >= first.len()
}

fn is_bad(test: &TestResult) -> bool {
    matches!(
        test.outcome,
        Outcome::Failed | Outcome::Error | Outcome::Absent
    )
}

/// `3 tests: 1 failed, 2 passed`.
fn summary(report: &Report) -> String {
    let all = [
        Outcome::Failed,
        Outcome::Error,
        Outcome::Absent,
        Outcome::Passed,
        Outcome::Skipped,
        Outcome::Xfailed,
        Outcome::Xpassed,
    ];
    let mut counts: Vec<String> = all
        .into_iter()
        .map(|outcome| {
            (
                outcome,
                report.tests.iter().filter(|t| t.outcome == outcome).count(),
            )
        })
        .filter(|(_, count)| *count > 0)
        .map(|(outcome, count)| format!("{count} {}", outcome.word()))
        .collect();
    if !report.collection_errors.is_empty() {
        counts.push(format!(
            "{} could not be collected",
            report.collection_errors.len()
        ));
    }
    if !report.not_found.is_empty() {
        counts.push(format!("{} not found", report.not_found.len()));
    }
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

/// Class, exception and the first line of the message.
pub fn one_line(failure: &Failure) -> String {
    let first = failure.message.lines().next().unwrap_or_default();
    format!("{}: {}", failure.exception, cut(first, 200))
}

fn failure(out: &mut String, failure: &Failure) {
    let stand_in = failure.stand_in().map(|frame| {
        let function = &frame.function;
        format!("raised by the test's own `{function}`, called by the code under test")
    });
    let kind = match failure.class {
        super::report::FailureClass::Assertion => {
            did_not_happen(&failure.message).unwrap_or("an assertion of the test did not hold")
        }
        _ if failure.is_turned_warning() => {
            "a warning, which the project's settings turn into an error"
        }
        super::report::FailureClass::Exception => stand_in
            .as_deref()
            .unwrap_or("raised by the code under test"),
        super::report::FailureClass::Error => {
            "an error of the test itself, not of the code under test"
        }
    };
    let phase = match failure.phase {
        super::report::Phase::Collect => "while collecting: ",
        super::report::Phase::Setup => "in setup: ",
        super::report::Phase::Call => "",
        super::report::Phase::Teardown => "in teardown: ",
    };
    let _ = write!(out, "\n  {phase}{kind}");
    let message = fitted(&failure.message);
    let _ = write!(
        out,
        "\n  {}: {}",
        failure.exception,
        indented(&message, "  ")
    );
    let skipped = failure.frames.len().saturating_sub(FRAMES);
    for (index, frame) in failure.frames.iter().enumerate() {
        // The ends of a long traceback say most.
        if skipped > 0 && index >= FRAMES / 2 && index < FRAMES / 2 + skipped {
            if index == FRAMES / 2 {
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

/// What `pytest.raises` and `pytest.warns` say, in plain words.
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
        let text = cut(&without_repeats(captured.trim()), CAPTURED);
        let _ = write!(out, "\n    {}", indented(&text, "    "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(message: &str) -> Failure {
        Failure {
            phase: super::super::report::Phase::Call,
            class: super::super::report::FailureClass::Assertion,
            exception: "Failed".to_owned(),
            message: message.to_owned(),
            frames: Vec::new(),
            missing_name: None,
        }
    }

    #[test]
    fn what_was_cut_out_of_the_message_is_not_said_to_stand_there() {
        let lines: Vec<String> = (0..200)
            .map(|n| format!("a line with number {n}"))
            .collect();
        let test = TestResult {
            id: "a".to_owned(),
            outcome: Outcome::Failed,
            failure: Some(failed(&lines.join("\n"))),
            captured: lines[98..102].join("\n"),
            seconds: 0.0,
            executed: Vec::new(),
        };
        let out = one_failure(&test);
        assert!(
            out.contains("characters left out") && out.contains("a line with number 100"),
            "{out}"
        );
    }

    #[test]
    fn an_exception_that_was_not_raised_is_told_in_plain_words() {
        let mut out = String::new();
        failure(&mut out, &failed("DID NOT RAISE <class 'ValueError'>"));
        assert!(
            out.starts_with(
                "\n  an assertion of the test did not hold: no exception was raised\n  Failed: DID NOT RAISE"
            ),
            "{out}"
        );
    }

    #[test]
    fn who_raised_an_exception_is_told() {
        use super::super::report::{FailureClass, Frame};
        let told = |exception: &str, frames: &[(Place, &str, &str)]| {
            let frames = frames.iter().map(|(place, function, code)| Frame {
                file: "a.py".to_owned(),
                line: 3,
                function: (*function).to_owned(),
                code: (*code).to_owned(),
                place: *place,
            });
            let raised = Failure {
                class: FailureClass::Exception,
                exception: exception.to_owned(),
                frames: frames.collect(),
                ..failed("no")
            };
            let mut out = String::new();
            failure(&mut out, &raised);
            out.lines().nth(1).unwrap_or_default().trim().to_owned()
        };
        let warned = "a warning, which the project's settings turn into an error";
        let by_code = "raised by the code under test";
        let test = (Place::Test, "test_a", "f(boom)");
        let source = |code| (Place::Source, "f", code);
        for (exception, frames, expected) in [
            (
                "DeprecationWarning",
                vec![test, source("warnings.warn('no')")],
                warned,
            ),
            (
                "DeprecationWarning",
                vec![test, source("raise DeprecationWarning('no')")],
                by_code,
            ),
            (
                "ValueError",
                vec![test, source("raise ValueError('no')")],
                by_code,
            ),
            (
                "ValueError",
                vec![
                    test,
                    source("g()"),
                    (Place::Test, "boom", "raise ValueError('no')"),
                ],
                "raised by the test's own `boom`, called by the code under test",
            ),
        ] {
            assert_eq!(told(exception, &frames), expected, "{frames:?}");
        }
    }

    #[test]
    fn failures_that_differ_in_values_alone_are_told_once() {
        let frame = super::super::report::Frame {
            file: "t.py".to_owned(),
            line: 3,
            function: "test_a".to_owned(),
            code: "assert f(n) == 0".to_owned(),
            place: Place::Test,
        };
        let test = |n: usize| TestResult {
            failure: Some(Failure {
                frames: vec![frame.clone()],
                ..failed(&format!("assert {n} == 0"))
            }),
            ..TestResult::new(&format!("t.py::test_a[{n}]"), Outcome::Failed)
        };
        let report = Report {
            tests: (1..4).map(test).collect(),
            ..Report::default()
        };
        let text = text(&report);
        assert!(
            text.ends_with(
                "[test] t.py:3 in test_a: assert f(n) == 0\nFAILED t.py::test_a[2]: much as above: Failed: assert 2 == 0\n\
                 FAILED t.py::test_a[3]: much as above: Failed: assert 3 == 0"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_big_run_is_told_in_few_lines() {
        let test = |n: usize, outcome: Outcome| TestResult {
            id: format!("tests/test_a.py::test_{n}"),
            outcome,
            failure: None,
            captured: String::new(),
            seconds: 0.5,
            executed: Vec::new(),
        };
        let mut report = Report {
            tests: (0..500).map(|n| test(n, Outcome::Passed)).collect(),
            ..Report::default()
        };
        report.tests.push(test(500, Outcome::Failed));
        let text = text(&report);
        assert!(
            text.starts_with("501 tests: 1 failed, 500 passed\nFAILED tests/test_a.py::test_500\n"),
            "{text}"
        );
        assert!(
            text.ends_with("... and 470 more that did not fail"),
            "{text}"
        );
    }
}
