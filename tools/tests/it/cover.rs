//! Tests of `cover`: wanted lines that tests run, and those that they miss.

use std::time::Duration;

use serde_json::json;
use testwright_tools::config::WantedLines;
use testwright_tools::tool::{ToolAnswer, ToolError};
use testwright_tools::{registry, server};

use crate::project::{Project, coverage_for, python};

const PKG: &str = "\
def size(n):
    if n > 9:
        text = 'large'
        return text
    for item in range(n):
        if item == 5:
            return 'found'
    return 'small'


def other():
    return size(1)
";

fn cover(tests: &str, lines: impl IntoIterator<Item = u32>) -> Result<ToolAnswer, ToolError> {
    let mut project = Project::new(&[("pkg.py", PKG), ("tests/test_a.py", tests)]);
    project.config.wanted = Some(WantedLines {
        package: coverage_for(&python()),
        lines: [("pkg.py".to_owned(), lines.into_iter().collect())].into(),
    });
    call(&project)
}

fn call(project: &Project) -> Result<ToolAnswer, ToolError> {
    let tool = registry::find("cover").unwrap();
    let arguments = json!({ "tests": ["tests/test_a.py"] });
    let mut workspace = project.workspace();
    server::call(tool, &mut workspace, arguments, Duration::from_secs(100))
}

#[test]
fn missed_lines_name_deciding_line() {
    let test = "import pkg\ndef test_a(): assert pkg.size(3) == 'small'\n";
    let answer = cover(test, 1..=12).unwrap();
    let text = answer.text;
    assert!(text.contains("1 passed"), "{text}");
    for line in [
        "pkg.py:3–4: line 2 `if n > 9` was never true",
        "pkg.py:7: line 6 `if item == 5` was never true",
        "pkg.py:12: line 11 `def other()` was never called",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert_eq!(answer.data["hit"]["pkg.py"], json!([1, 2, 5, 6, 8, 11]));
}

#[test]
fn all_wanted_lines_can_run() {
    let test = "import pkg\ndef test_a(): assert pkg.size(10) == 'small'\n";
    let answer = cover(test, 3..=4).unwrap();
    assert!(answer.text.contains("1 failed"), "{}", answer.text);
    assert!(
        answer.text.ends_with("All wanted lines run.\n"),
        "{}",
        answer.text
    );
    assert_eq!(answer.data["missed"], json!([]));
}

#[test]
fn missing_wanted_lines_are_refused() {
    let project = Project::new(&[("tests/test_a.py", "def test_a(): pass\n")]);
    let refused = call(&project).unwrap_err().to_string();
    assert!(refused.contains("no wanted lines"), "{refused}");
}
