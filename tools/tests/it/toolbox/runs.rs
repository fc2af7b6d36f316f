//! What `run_pytest` and `run_python` say of a run.

use serde_json::json;

use super::{Client, PKG, project, write};
use crate::project::Project;

#[test]
fn values_are_whole_and_assertions_that_did_not_run_are_named() {
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
    assert!(
        text.ends_with("\nnot reached in tests/test_a.py::test_long: line 5, line 7"),
        "{text}"
    );
}

#[test]
fn what_a_snippet_prints_stands_in_the_order_in_which_it_was_written() {
    let project = project();
    let mut client = Client::start(&project);
    let code = "import sys\nfor n in range(3):\n    print('out', n)\n    print('err', n, file=sys.stderr)\nprint('-- ../../testbed/src/a.py:1')";
    let (text, _) = client.call("run_python", &json!({ "code": code }));
    assert_eq!(
        text,
        "out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\n-- ../../testbed/src/a.py:1"
    );
}
