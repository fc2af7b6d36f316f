//! Tests of the reports of `run_pytest` and `run_python`.

use serde_json::json;

use super::{Client, PKG, project, write};
use crate::project::Project;

#[test]
fn unreached_assertions_are_named() {
    let project = Project::new(&[("pkg/__init__.py", PKG)]);
    let mut client = Client::start(&project);
    let test = "\
import pkg
def test_long():
    left = [\"a rather long word %d\" % n for n in range(40)]
    assert left == left[:-1] + [\"another\"]
    assert pkg.half(2) == 1
    with open(\"x\"):
        assert 1
";
    write(&project, "tests/test_a.py", test);
    let (text, _) = client.call("run_pytest", &json!({}));
    assert!(
        text.contains("At index 39 diff: 'a rather long word 39' != 'another'"),
        "{text}"
    );
    assert!(!text.contains("Use -v to get"), "{text}");
    // A reviewer's view is built from these messages.
    let cut_free = |data: &serde_json::Value| {
        let message = data["failure"]["message"].as_str().unwrap();
        message.contains("'a rather long word 20'") && message.contains("'another'")
    };
    let (_, data) = client.call("submit", &json!({}));
    assert!(cut_free(&data["old"]["tests"][0]), "{data}");
    for rerun in data["reruns"].as_array().unwrap() {
        assert!(cut_free(&rerun["report"]["tests"][0]), "{rerun}");
    }
    let fix = json!({"edits": [{"path": "pkg/new.py", "new": "x = 1\n"}]});
    let (text, data) = client.call("try_fix", &fix);
    assert!(cut_free(&data["report"]["tests"][0]), "{data}");
    assert!(text.contains("fails exactly as without the fix"), "{text}");
    let (text, _) = client.call("run_pytest", &json!({}));
    assert!(
        text.ends_with("\nnot reached in tests/test_a.py::test_long: line 5, line 7 (a fix in try_fix that gets past line 4 runs them)"),
        "{text}"
    );
}

#[test]
fn diffs_and_warnings_are_explained() {
    let project = Project::new(&[
        (
            "pkg/__init__.py",
            "import warnings\nwarnings.warn('while it is imported')\ndef half(n):\n    warnings.warn('halves are old')\n    return n // 2\n",
        ),
        (
            "tests/test_old.py",
            "import pytest\n@pytest.mark.parametrize('text', ['a b'])\ndef test_old(text):\n    pass\n",
        ),
    ]);
    let mut client = Client::start(&project);
    let test = "\
import pkg, pytest
def test_lines():
    assert 'same\\nis' == 'same\\nwanted'
def test_less():
    assert {1, 2} == {1}
def test_call():
    assert pkg.half(2) == 2
@pytest.mark.parametrize('text', ['short', 'two words', 'a b'])
def test_text(text):
    pkg.half(1)
    pkg.half(2)
";
    write(&project, "tests/test_a.py", test);
    let all = json!({ "tests": ["tests"] });
    let (text, data) = client.call("run_pytest", &all);
    let sides = "[diff: + is the left side of the comparison, - the right side]";
    // A message without a diff has its own lines that begin with a sign; short values are already in the first line.
    assert_eq!(text.matches(sides).count(), 1, "{text}");
    let (before, _) = text.split_once(sides).unwrap();
    assert!(
        before.contains("- wanted") && before.contains("+ is"),
        "{text}"
    );
    assert!(
        text.contains("\nwarned at pkg/__init__.py:4 (4 times): UserWarning: halves are old\n"),
        "{text}"
    );
    assert!(!text.contains("while it is imported"), "{text}");
    assert_eq!(data["warnings"][0]["count"], 4);
    assert!(
        text.ends_with(
            "\nThe id tests/test_a.py::test_text[two words] holds spaces, at which many programs cut ids: give short `ids=`."
        ),
        "{text}"
    );
}

#[test]
fn snippet_output_keeps_write_order() {
    let project = project();
    let mut client = Client::start(&project);
    let code = "import sys\nfor n in range(3):\n    print('out', n)\n    print('err', n, file=sys.stderr)\nprint('-- ../../testbed/src/a.py:1')";
    let (text, _) = client.call("run_python", &json!({ "code": code }));
    assert_eq!(
        text,
        "out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\n-- ../../testbed/src/a.py:1"
    );
}

#[test]
fn paths_and_objects_are_distinguishable() {
    let project = project();
    let mut client = Client::start(&project);
    let code = "\
import os, tempfile
a, b = object(), object()
print(os.path.abspath('x'), 'x', a, b, a)
print(tempfile.mkdtemp() == tempfile.mkdtemp(), tempfile.mkdtemp())
print('done in 0.25 s')
";
    let (text, _) = client.call("run_python", &json!({ "code": code }));
    assert_eq!(
        text,
        "<repo>/x x <object object at 0x...1> <object object at 0x...2> <object object at 0x...1>\n\
         False /tmp/tmp...1\ndone in 0.25 s"
    );
}
