use super::*;
use crate::outcomes::report::{FailureClass, Outcome, Phase, TestResult};
use crate::testing::Fixture;
use crate::workspace::Change;

const TEST: &[u8] = b"# coding: latin-1\nimport pkg\n\ndef test_a():\n\x0c    x = '\xe4'\r\n    assert pkg.half(\n        2) == 7\n";

fn invented(file: &str, line: u32, code: &str, exception: &str) -> Vec<String> {
    let fixture = Fixture::new(&[
        ("tests/test_a.py", TEST),
        ("pkg/page.html", b"<html>\n"),
        (
            "pkg/long.py",
            format!("x = [{}]\n", "1, ".repeat(200)).as_bytes(),
        ),
    ]);
    let contributed = [ContributedTest {
        id: "tests/test_a.py::test_a".to_owned(),
        change: Change::Added,
        line: 4,
        source: String::new(),
        replaced_code: Vec::new(),
    }];
    let frame = Frame {
        file: file.to_owned(),
        line,
        function: "test_a".to_owned(),
        code: code.to_owned(),
        place: Place::Test,
    };
    let failure = Failure {
        phase: Phase::Call,
        class: FailureClass::Assertion,
        exception: exception.to_owned(),
        message: String::new(),
        frames: vec![frame],
        missing_name: None,
    };
    let old = TestReport {
        tests: vec![TestResult {
            failure: Some(failure),
            ..TestResult::new("tests/test_a.py::test_a", Outcome::Failed)
        }],
        ..TestReport::default()
    };
    list(&fixture.workspace, &old, &contributed)
}

#[test]
fn recorded_lines_match_their_files() {
    for (file, line, code) in [
        ("tests/test_a.py", 4, "def test_a():"),
        ("tests/test_a.py", 5, "x = 'ä'"),
        ("tests/test_a.py", 6, "assert pkg.half("),
        ("tests/test_a.py", 7, "2) == 7"),
        ("tests/test_a.py", 9, ""),
        ("tests/test_a.py", 0, "wrapped"),
        ("pkg/page.html", 1, "{{ x }}"),
        ("pkg/generated.py", 3, "x"),
        ("<string>", 3, "x"),
    ] {
        assert_eq!(invented(file, line, code, "E"), Vec::<String>::new());
    }
    let long = format!("x = [{}", "1, ".repeat(200));
    let cut: String = long.chars().take(MAX_CODE_CHARS).collect();
    assert_eq!(invented("pkg/long.py", 1, &cut, "E"), Vec::<String>::new());
}

#[test]
fn invented_line_is_reported() {
    assert_eq!(
        invented("tests/test_a.py", 4, "assert 5 == 4", "AssertionError"),
        [
            "tests/test_a.py::test_a: tests/test_a.py:4 shows `assert 5 == 4`, but the file has `def test_a():`"
        ]
    );
    assert_eq!(
        invented("tests/test_a.py", 99, "assert 5 == 4", "AssertionError"),
        [
            "tests/test_a.py::test_a: tests/test_a.py:99 shows `assert 5 == 4`, but the file has no such line"
        ]
    );
    // The compiler may count the lines of a part of the file.
    let of_compiler = invented("tests/test_a.py", 1, "x = (", "builtins.SyntaxError");
    assert_eq!(of_compiler, Vec::<String>::new());
}
