//! Tests of `try_fix` over stdio.

use serde_json::json;

use super::{Client, NEW, PKG, TESTS, project, write};
use crate::project::Project;

#[test]
fn try_fix_runs_tests_on_fixed_code() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    let edit = |old: &str, new: &str| json!({ "edits": [{ "path": "pkg/__init__.py", "old": old, "new": new }] });
    assert!(
        client
            .refused("try_fix", &edit("n > 1", "n >= 0"))
            .contains("    2     return n // 2 if n > 0 else 1")
    );
    assert!(
        client
            .refused("try_fix", &edit("n > 0", "n >"))
            .contains("does not parse")
    );
    let test = json!({ "edits": [{ "path": "tests/test_a.py", "old": "== 0", "new": "== 1" }] });
    assert!(client.refused("try_fix", &test).contains("is test code"));
    let (text, _) = client.call("run_pytest", &json!({}));
    assert!(
        text.contains("1 failed"),
        "refused edits left something: {text}"
    );
    let (text, data) = client.call("try_fix", &edit("n > 0", "n >= 0"));
    assert!(
        text.starts_with("The test that you added or changed passes with this fix."),
        "{text}"
    );
    assert_eq!(data["report"]["tests"][0]["outcome"], "passed");
    assert!(
        data["patch"]
            .as_str()
            .unwrap()
            .contains("+    return n // 2 if n >= 0 else 1")
    );
    assert!(!data["patch"].as_str().unwrap().contains("test_zero"));
}

#[test]
fn try_fix_reports_broken_neighbours() {
    let old = "import pkg\ndef test_one(): assert pkg.half(1) == 0\ndef test_red(): assert pkg.half(0) == 7\ndef test_green(): assert pkg.half(4) == 2\n";
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", old)]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{old}{NEW}"));
    let edits = json!({ "edits": [
        { "path": "pkg/__init__.py", "old": "n // 2 if n > 0 else 1", "new": "(n + 1) // 2" },
        { "path": "pkg/new.py", "new": "x = 1\n" },
    ] });
    let (text, data) = client.call("try_fix", &edits);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    The fix breaks 1 of 3 neighbours in tests/test_a.py: tests/test_a.py::test_one; 1 fails with and without it. (It may pin what the issue calls wrong.)

    The fix breaks:

    FAILED tests/test_a.py::test_one
      an assertion of the test did not hold
      AssertionError: assert 1 == 0
       +  where 1 = <function half at 0x...1>(1)
       +    where <function half at 0x...1> = pkg.half
        [test] tests/test_a.py:2 in test_one: def test_one(): assert pkg.half(1) == 0

    Failing with and without the fix:
    tests/test_a.py::test_red: AssertionError: assert 0 == 7
    ");
    assert_eq!(data["report"]["tests"].as_array().unwrap().len(), 1);
    assert_eq!(data["neighbours"]["good"], 1);
    assert!(data["patch"].as_str().unwrap().contains("pkg/new.py"));
}

/// Returns the text of `try_fix` for the correct fix, with these tests beside the new one.
fn fixed_beside(old: &str) -> String {
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", old)]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{old}{NEW}"));
    let edit = json!({ "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }] });
    let (text, _) = client.call("try_fix", &edit);
    text
}

#[test]
fn try_fix_runs_nearest_tests_first() {
    // The nearest test runs first.
    let old = "import pkg, os\ndef test_green(): pass\ndef test_dies(): os._exit(3)\n";
    let text = fixed_beside(old);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    The fix breaks none of 1 neighbour that ran, of 2 in tests/test_a.py; 1 fails with and without it.
    Not all of the neighbours ran before pytest ended; the nearest ran first.

    Failing with and without the fix:
    tests/test_a.py::test_dies: process: the process ended with exit status 3 while this test ran
    ");
}

#[test]
fn tests_naming_edited_code_run_first() {
    let old =
        "import os, pkg\ndef test_named(): assert pkg.half(4) == 3\ndef test_dies(): os._exit(3)\n";
    let text = fixed_beside(old);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    The fix breaks none of 2 neighbours in tests/test_a.py; 2 fail with and without it.

    Failing with and without the fix:
    tests/test_a.py::test_named: AssertionError: assert 2 == 3
    tests/test_a.py::test_dies: process: the process ended with exit status 3 while this test ran
    ");
}

#[test]
fn try_fix_ignores_test_interference() {
    let old = "\
import pkg
LEFT = []
def test_finds(): assert not LEFT
def test_leaves(): LEFT.append(1)
";
    let text = fixed_beside(old);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    The fix breaks none of 2 neighbours in tests/test_a.py; 1 fails only among the others.

    Failing only among the others:
    tests/test_a.py::test_finds: AssertionError: assert not [1]
    ");
}

#[test]
fn try_fix_counts_all_named_tests() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
        ("tests/b/test_b.py", "def test_named(): assert 0\n"),
    ]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    let (text, data) = client.call(
        "try_fix",
        &json!({
            "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }],
            "tests": ["tests/test_a.py::test_zero", "tests/b", "tests/gone.py::test_x"],
        }),
    );
    assert!(
        text.starts_with(
            "1 of the 3 tests that you named passes with this fix.\nThe fix does not break the one neighbour in tests/test_a.py."
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "tests/b/test_b.py::test_named fails exactly as without the fix at line 1: AssertionError"
        ),
        "{text}"
    );
    assert_eq!(data["report"]["tests"].as_array().unwrap().len(), 2);
    assert_eq!(
        data["report"]["not_found"],
        json!(["tests/gone.py::test_x"])
    );
}

#[test]
fn try_fix_explains_absent_tests() {
    let ini = "[pytest]\naddopts = -m \"not slow\"\nmarkers =\n    slow: takes long\n";
    let project = Project::new(&[
        ("tox.ini", ini),
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
    ]);
    let mut client = Client::start(&project);
    let slow = "\nimport pytest\n@pytest.mark.slow\ndef test_slow(): pass\n";
    write(&project, "tests/test_a.py", &format!("{TESTS}{slow}"));
    let edit = json!({ "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }] });
    let (text, _) = client.call("try_fix", &edit);
    insta::assert_snapshot!(text, @r"
    None of the tests that you added or changed ran with this fix.
    The fix does not break the one neighbour in tests/test_a.py.

    With the fix: 1 test: 1 skipped

    skipped tests/test_a.py::test_slow (deselected by the options of this run or of the repository)
    ");
}

#[test]
fn several_fixes_are_tried() {
    let old = "import pkg\ndef test_one(): assert pkg.half(1) == 0\n";
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", old)]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{old}{NEW}"));
    let edit = |new: &str, variant: u32| json!({ "path": "pkg/__init__.py", "old": "n > 0", "new": new, "variant": variant });
    let edits =
        json!({ "edits": [edit("n >= 0", 1), edit("n >= 0 and n != 1", 2), edit("n > 0 + 0", 3)] });
    let (text, data) = client.call("try_fix", &edits);
    insta::assert_snapshot!(text, @r"
    Variant 1
    The test that you added or changed passes with this fix.
    The fix does not break the one neighbour in tests/test_a.py.

    Variant 2
    The test that you added or changed passes with this fix.
    The fix breaks 1 of 1 neighbour in tests/test_a.py: tests/test_a.py::test_one. (It may pin what the issue calls wrong.)

    The fix breaks:

    FAILED tests/test_a.py::test_one
      an assertion of the test did not hold
      AssertionError: assert 1 == 0
       +  where 1 = <function half at 0x...1>(1)
       +    where <function half at 0x...1> = pkg.half
        [test] tests/test_a.py:2 in test_one: def test_one(): assert pkg.half(1) == 0

    Variant 3
    None of the tests that you added or changed passes with this fix: the fix is incomplete, or the test asks for something else.
    tests/test_a.py::test_zero fails exactly as without the fix at line 5: AssertionError: assert 1 == 0

    (Neighbours ran with variants 1 and 2 only, with which the tests pass.)
    ");
    assert_eq!(data["variants"].as_array().unwrap().len(), 3);
    let wrong = json!({ "edits": [edit("n > 0 + 0", 1), edit("n > 0 - 0", 2)] });
    let (text, data) = client.call("try_fix", &wrong);
    assert!(
        text.ends_with("\n\n(Neighbours ran with variant 1 only, since the tests pass with none.)"),
        "{text}"
    );
    let good = |at: usize| data["variants"][at]["neighbours"]["good"].clone();
    assert_eq!((good(0), good(1)), (json!(1), json!(0)));
}

#[test]
fn edit_without_effect_is_not_a_fix() {
    let project = project();
    let mut client = Client::start(&project);
    let test = format!(
        "\ndef test_size():\n    import os\n    assert pkg.half(4) != 2 or os.path.getsize(pkg.__file__) != {}\n",
        PKG.len()
    );
    write(&project, "tests/test_a.py", &format!("{TESTS}{test}"));
    let old = "    return n // 2 if n > 0 else 1";
    let edit = |new: &str| {
        let edit = json!({ "path": "pkg/__init__.py", "old": old, "new": new });
        json!({ "edits": [edit] })
    };
    let comment = format!("    # The rest is lost.\n\n{old}");
    let (text, data) = client.call("try_fix", &edit(&comment));
    let expected = "This edit changes only comments, docstrings or layout, and so no behaviour: it is not a fix, and \
                    says nothing about the tests. A test that fails without it and passes with it looks at the code \
                    instead of running it.";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(data["placebo"], true);
    let (text, data) = client.call("try_fix", &edit("    return n // 2"));
    assert!(
        text.starts_with("The test that you added or changed passes"),
        "{text}"
    );
    assert_eq!(data["placebo"], serde_json::Value::Null);
}
