#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::testing::Fixture;

const TESTS: &str =
    "import pkg\n\ndef helper():\n    return pkg.f()\n\ndef test_a():\n    assert helper()\n";

fn excerpts(f: &mut Fixture, arguments: serde_json::Value) -> Excerpts {
    let answer = f.answer(ReviewContext::NAME, arguments).unwrap();
    serde_json::from_value(answer.data).unwrap()
}

#[test]
fn changed_code_is_not_repeated() {
    let mut f = Fixture::new(&[("tests/test_a.py", TESTS.as_bytes())]);
    let new = format!("{TESTS}\nSIZE = 3\n\ndef test_b():\n    assert helper() == SIZE\n");
    std::fs::write(f.workspace.root().join("tests/test_a.py"), new).unwrap();
    let review = excerpts(
        &mut f,
        json!({"tests": ["tests/test_a.py::test_b"], "places": []}),
    );
    let lines: Vec<usize> = review.used.iter().map(|excerpt| excerpt.line).collect();
    assert_eq!(lines, [1, 3]);
    assert_eq!(review.used[1].source, "def helper():\n    return pkg.f()");
}

#[test]
fn enclosing_function_is_shown_or_shortened() {
    let long: String = (0..200).map(|n| format!("    x = {n}\n")).collect();
    let code = format!("@d\ndef f():\n    return 1\n\ndef long():\n{long}");
    let mut f = Fixture::new(&[("pkg.py", code.as_bytes())]);
    let place = |line| json!({"path": "pkg.py", "line": line});
    let review = excerpts(
        &mut f,
        json!({"tests": [], "places": [place(3), place(2), place(4), place(150), place(155), {"path": "none.py", "line": 1}]}),
    );
    assert_eq!(review.functions.len(), 2, "{review:?}");
    assert_eq!(review.functions[0].source, "@d\ndef f():\n    return 1");
    // Another line of the same excerpt adds nothing.
    let part = &review.functions[1].source;
    assert!(part.starts_with("def long():\n    …\n"), "{part}");
    assert!(part.contains("x = 144\n") && part.ends_with("…"), "{part}");
}

#[test]
fn functions_appear_once_module_lines_with_context() {
    let long: String = (0..40).map(|n| format!("    x = {n}\n")).collect();
    let code =
        format!("X = 1\n\n\ndef f():\n    def g():\n        return X\n\n{long}    return g\n");
    let mut f = Fixture::new(&[("pkg.py", code.as_bytes())]);
    let place = |line| json!({"path": "pkg.py", "line": line});
    let review = excerpts(
        &mut f,
        json!({"tests": [], "places": [place(1), place(6), place(47)]}),
    );
    let lines: Vec<usize> = review.functions.iter().map(|one| one.line).collect();
    assert_eq!(lines, [1, 4]);
    assert!(review.functions[0].source.starts_with("X = 1\n"));
    let both = &review.functions[1].source;
    assert!(
        both.contains("def g():") && both.contains("x = 39"),
        "{both}"
    );
    assert_eq!(both.matches("x = 20\n").count(), 1);
}

#[test]
fn class_and_whole_signature_are_shown() {
    let long: String = (0..40).map(|n| format!("        x = {n}\n")).collect();
    let code = format!(
        "class A:\n    size = 1\n\n    def f(\n        self,\n        name,\n    ):\n{long}"
    );
    let mut f = Fixture::new(&[("pkg.py", code.as_bytes())]);
    let review = excerpts(
        &mut f,
        json!({"tests": [], "places": [{"path": "pkg.py", "line": 40}]}),
    );
    let shown = &review.functions[0].source;
    let head = "class A:\n    …\n    def f(\n        self,\n        name,\n    ):\n    …\n";
    assert!(shown.starts_with(head), "{shown}");
}

#[test]
fn docstring_middle_is_left_out() {
    let lines: String = (0..9).map(|n| format!("    line {n}\n")).collect();
    let code = format!("def f():\n    \"\"\"Does it.\n\n{lines}    \"\"\"\n    return 1\n");
    let mut f = Fixture::new(&[("pkg.py", code.as_bytes())]);
    let review = excerpts(
        &mut f,
        json!({"tests": [], "places": [{"path": "pkg.py", "line": 14}]}),
    );
    assert_eq!(
        review.functions[0].source,
        "def f():\n    \"\"\"Does it.\n\n    …\n    \"\"\"\n    return 1"
    );
}
