#![allow(clippy::unwrap_used)]
use super::*;

const FUNCTIONS: &str = "\"\"\"Tests.\"\"\"\nfrom slugs import slugify\n\n\ndef test_one():\n    assert slugify('a') == 'b'\n\n\nclass TestTwo:\n    @staticmethod\n    def test_two():\n        assert False\n";

fn failing<'a>(ids: &[&'a str]) -> Tests<'a> {
    Tests {
        failing: ids.to_vec(),
        passing: Vec::new(),
    }
}

#[test]
fn pytest_functions_are_marked_and_unmarked() {
    let ids = [
        "t.py::test_one",
        "t.py::TestTwo::test_two",
        "other.py::test_one",
    ];
    let marked = mark("t.py", FUNCTIONS, &failing(&ids), "#12", RunnerKind::Pytest).unwrap();
    insta::assert_snapshot!(marked);
    let unmarked = unmark("t.py", &marked, &ids, "#12").unwrap();
    assert_eq!(unmarked.replace("import pytest\n", ""), FUNCTIONS);
    // A mark that testwright did not add stays.
    assert_eq!(unmark("t.py", &marked, &ids, "#13").unwrap(), marked);
}

#[test]
fn partly_passing_parameters_mark_not_strict() {
    let text = "import pytest\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert n == 1\n";
    let tests = Tests {
        failing: vec!["t.py::test_n[2]"],
        passing: vec!["t.py::test_n[1]"],
    };
    let marked = mark("t.py", text, &tests, "a \"b\"", RunnerKind::Pytest).unwrap();
    assert!(marked.starts_with(
        "import pytest\n\n@pytest.mark.xfail(strict=False, reason=\"a \\\"b\\\"\")\n@pytest.mark.p"
    ));
}

#[test]
fn unittest_methods_use_unittest_mark() {
    let text = "from unittest import TestCase\r\n\r\nclass Base(TestCase):\r\n    pass\r\n\r\nclass A(Base):\r\n    def test_a(self):\r\n        self.fail()\r\n";
    let ids = ["t.py::A::test_a"];
    for runner in [RunnerKind::Pytest, RunnerKind::Unittest] {
        let marked = mark("t.py", text, &failing(&ids), "#1", runner).unwrap();
        assert!(marked.contains("import unittest\r\n"), "{marked}");
        assert!(marked.contains("    @unittest.expectedFailure\r\n    def test_a"));
        assert!(
            !unmark("t.py", &marked, &ids, "#1")
                .unwrap()
                .contains("expectedFailure")
        );
    }
    let plain = "def test_a():\n    assert False\n";
    assert!(
        mark(
            "t.py",
            plain,
            &failing(&["t.py::test_a"]),
            "#1",
            RunnerKind::Sympy
        )
        .is_err()
    );
    assert!(
        mark(
            "t.py",
            plain,
            &failing(&["t.py::test_b"]),
            "#1",
            RunnerKind::Pytest
        )
        .is_err()
    );
}
