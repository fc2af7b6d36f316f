//! Compares the record of a failure with the files: each frame must show a line that its file has. A test that writes
//! its own record does not know the lines of a failure that never happened.

use std::path::Path;

use crate::outcomes::report::{Failure, Frame, Place, TestReport};
use crate::tools::contribution::lossy;
use crate::tools::submission::ContributedTest;
use crate::workspace::Workspace;

use super::failures::{contributed_failures, is_contributed_in};

/// Maximum characters of a line that the recorder keeps.
const MAX_CODE_CHARS: usize = 300;
/// Maximum characters of a line in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// Lists the frames of failing contributed tests whose line differs from the file:
/// `ID: FILE:LINE shows CODE, but the file has OTHER`.
pub(super) fn list(
    workspace: &Workspace,
    old: &TestReport,
    contributed: &[ContributedTest],
) -> Vec<String> {
    let of_tests = contributed_failures(old, contributed)
        .filter_map(|test| Some((test.id.as_str(), test.failure.as_ref()?)));
    let of_modules = (old.collection_errors.iter())
        .filter(|error| is_contributed_in(&error.id, contributed))
        .map(|error| (error.id.as_str(), &error.failure));
    let mut invented = Vec::new();
    for (id, failure) in of_tests.chain(of_modules) {
        let frames = recorded_frames(failure).iter();
        invented.extend(frames.filter_map(|frame| {
            let other = other_line(workspace, frame)?;
            Some(format!(
                "{id}: {}:{} shows {}, but the file has {}",
                frame.file,
                frame.line,
                quote(&frame.code),
                quote(&other)
            ))
        }));
    }
    invented
}

/// Returns the frames whose line the recorder reads from the file. The compiler itself gives the line of a syntax
/// error, whose number may count from elsewhere.
fn recorded_frames(failure: &Failure) -> &[Frame] {
    let kind = failure.exception.rsplit('.').next().unwrap_or_default();
    let frames = failure.frames.as_slice();
    match frames {
        [rest @ .., _] if matches!(kind, "SyntaxError" | "IndentationError" | "TabError") => rest,
        _ => frames,
    }
}

/// Returns the file's line if it differs from the frame's. Frames of generated code, templates and removed files have
/// no line to compare.
fn other_line(workspace: &Workspace, frame: &Frame) -> Option<String> {
    let is_comparable = frame.place != Place::External
        && frame.line > 0
        && frame.file.ends_with(".py")
        && !frame.code.trim().is_empty();
    if !is_comparable {
        return None;
    }
    let text = lossy(&workspace.read(Path::new(&frame.file)).ok()?);
    let line = text.split('\n').nth(frame.line as usize - 1);
    let line: String = (line.unwrap_or_default().trim().chars())
        .take(MAX_CODE_CHARS)
        .collect();
    (letters(&line) != letters(&frame.code)).then_some(line)
}

/// Returns the part of a line that is the same however the file is decoded and the line is stripped.
fn letters(line: &str) -> String {
    line.chars().filter(char::is_ascii_graphic).collect()
}

fn quote(line: &str) -> String {
    let mut text: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    match text.is_empty() {
        true => "no such line".to_owned(),
        false => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
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
}
