//! Tests of the text of reports.

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
fn cut_message_lines_are_not_referenced() {
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
fn redundant_diff_is_left_out() {
    let diff = "  Full diff:\n  - {1}\n  + {1, 2}\n[diff: + is the left side of the comparison, - the right side]";
    let whole =
        format!("assert {{1, 2}} == {{1}}\n  Extra items in the left set:\n  2\n{diff}\n(cause)");
    assert_eq!(
        super::shorten::shorten_message(&whole),
        "assert {1, 2} == {1}\n  Extra items in the left set:\n  2\n(cause)"
    );
    let cut = format!("assert {{1, 2...}} == {{1...}}\n{diff}");
    assert_eq!(super::shorten::shorten_message(&cut), cut);
}

#[test]
fn missing_exception_is_explained() {
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
fn exception_origin_is_named() {
    use super::super::report::{FailureClass, Frame};
    let origin_text = |exception: &str, frames: &[(Place, &str, &str)]| {
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
        assert_eq!(origin_text(exception, &frames), expected, "{frames:?}");
    }
}

#[test]
fn failures_differing_in_values_are_merged() {
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
    let report = TestReport {
        tests: (1..4).map(test).collect(),
        ..TestReport::default()
    };
    let text = text(&report);
    assert!(
        text.ends_with(
            "[test] t.py:3 in test_a: assert f(n) == 0\n2 more parameter sets fail alike: 2, 3"
        ),
        "{text}"
    );
}

#[test]
fn failures_like_others_are_counted() {
    let test = |n: usize| TestResult {
        failure: Some(failed("no database")),
        ..TestResult::new(&format!("t.py::test_{n}"), Outcome::Failed)
    };
    let report = TestReport {
        tests: (0..15).map(test).collect(),
        ..TestReport::default()
    };
    let text = text(&report);
    assert_eq!(text.matches(": as above").count(), MAX_ALIKE, "{text}");
    let rest = "\n... and 4 more that failed much as above.";
    assert!(text.ends_with(rest), "{text}");
}

#[test]
fn different_failures_are_listed_separately() {
    let frame = super::super::report::Frame {
        file: "t.py".to_owned(),
        line: 3,
        function: "test_a".to_owned(),
        code: "f(n)".to_owned(),
        place: Place::Test,
    };
    let test = |id: &str, message: &str| TestResult {
        failure: Some(Failure {
            frames: vec![frame.clone()],
            ..failed(message)
        }),
        ..TestResult::new(id, Outcome::Failed)
    };
    let report = TestReport {
        tests: vec![
            test("t.py::test_a[one]", "no number given"),
            test("t.py::test_a[two]", "another thing altogether happened"),
            test("t.py::test_a[three-x]", "no number given"),
            test("t.py::test_b", "no number given"),
        ],
        ..TestReport::default()
    };
    let text = text(&report);
    assert!(
        text.contains("t.py:3 in test_a: f(n)\n1 more parameter set fails alike: three-x\n"),
        "{text}"
    );
    assert!(text.contains("FAILED t.py::test_a[two]\n"), "{text}");
    assert!(text.ends_with("FAILED t.py::test_b: as above"), "{text}");
}

#[test]
fn likeness_tells_equal_from_similar_failures() {
    let frame = super::super::report::Frame {
        file: "t.py".to_owned(),
        line: 3,
        function: "test_a".to_owned(),
        code: "assert f(n) == 0".to_owned(),
        place: Place::Test,
    };
    let failure = |message: &str| Failure {
        frames: vec![frame.clone()],
        ..failed(message)
    };
    let (one, other) = (failure("assert 1 == 0"), failure("no such file"));
    // An equal failure counts although a similar one comes first.
    let two = failure("assert 2 == 0");
    let earlier = [&two, &one];
    assert_eq!(find_likeness(&one, &earlier), Some(Likeness::Same));
    let similar = failure("assert 3 == 0");
    assert_eq!(find_likeness(&similar, &earlier), Some(Likeness::Similar));
    assert_eq!(find_likeness(&other, &earlier), None);
}

#[test]
fn large_runs_are_summarized() {
    let test = |n: usize, outcome: Outcome| TestResult {
        id: format!("tests/test_a.py::test_{n}"),
        outcome,
        failure: None,
        captured: String::new(),
        seconds: 0.5,
        executed: Vec::new(),
    };
    let mut report = TestReport {
        tests: (0..500).map(|n| test(n, Outcome::Passed)).collect(),
        ..TestReport::default()
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
