use super::*;
use crate::rule_based::candidates::Expects;
use crate::rule_based::probe::Subject;
use crate::rule_based::test_body::ProcessChange;
use crate::rule_based::test_name::Behaviour;

fn candidate(imports: &[&str], lines: &[&str], changes: Vec<ProcessChange>) -> Candidate {
    let owned = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect();
    Candidate {
        trust: 0,
        body: TestBody {
            imports: owned(imports),
            lines: owned(lines),
            changes,
            captured: None,
        },
        function: None,
        subject: Subject::default(),
        behaviour: Behaviour::AsWritten,
        expects: Expects::Assertion,
        sentence: String::new(),
        homes: Vec::new(),
    }
}

fn change(line: usize, patched: &[&str], leak: &str) -> ProcessChange {
    ProcessChange {
        lines: line..line + 1,
        patched: patched.iter().map(|line| (*line).to_owned()).collect(),
        leaks: vec![leak.to_owned()],
    }
}

const FUNCTIONS: &str = "def test_a():\n    assert f('a')\n";
const TEST_CASE: &str =
    "class TestA(TestCase):\n    def test_a(self):\n        self.assertTrue(f('a'))\n";

fn written(candidate: &Candidate, text: &str, class: Option<&str>, inside: &[String]) -> TestCode {
    write(
        candidate,
        "test_b",
        &TestStyle::read(text, class, None),
        inside,
    )
}

#[test]
fn process_changes_end_with_pytest_function() {
    let candidate = candidate(
        &["import os", "from a import f"],
        &["os.environ[\"A\"] = \"1\"", "os.chdir('/')", "f()"],
        vec![
            change(0, &["monkeypatch.setenv(\"A\", \"1\")"], "environ"),
            change(1, &["monkeypatch.chdir('/')"], "folder"),
        ],
    );
    let test = written(&candidate, FUNCTIONS, None, &[]);
    assert_eq!(
        test.code,
        "def test_b(monkeypatch):\n    monkeypatch.setenv('A', '1')\n    monkeypatch.chdir('/')\n    f()\n"
    );
    // Only the replaced lines used `os`.
    assert_eq!(test.imports, ["from a import f"]);
}

#[test]
fn process_changes_end_with_unittest_method() {
    let candidate = candidate(
        &["import os", "from a import f"],
        &["os.environ['A'] = '1'", "os.chdir('/')", "assert f() == 1"],
        vec![
            change(0, &["monkeypatch.setenv('A', '1')"], "environ"),
            change(1, &["monkeypatch.chdir('/')"], "folder"),
        ],
    );
    let test = written(&candidate, TEST_CASE, Some("TestA"), &[]);
    assert_eq!(
        test.code,
        "@mock.patch.dict(os.environ)\ndef test_b(self):\n    os.environ['A'] = '1'\n    \
         self.addCleanup(os.chdir, os.getcwd())\n    os.chdir('/')\n    self.assertEqual(f(), 1)\n"
    );
    let imports = ["import os", "from a import f", "from unittest import mock"];
    assert_eq!(test.imports, imports);
}

#[test]
fn changed_attribute_is_restored() {
    let patched = "monkeypatch.setattr(a, \"LIMIT\", 3, raising=False)";
    let change = ProcessChange {
        leaks: Vec::new(),
        ..change(0, &[patched], "")
    };
    let candidate = candidate(&["import a"], &["a.LIMIT = 3", "a.f()"], vec![change]);
    let test = written(&candidate, "def test_a(): pass\n", None, &[]);
    assert_eq!(
        test.code,
        format!("def test_b(monkeypatch):\n    {patched}\n    a.f()\n")
    );
    let test = written(&candidate, TEST_CASE, Some("TestA"), &[]);
    assert_eq!(
        test.code,
        "def test_b(self):\n    mock.patch.object(a, 'LIMIT', 3, create=True).start()\n    \
         self.addCleanup(mock.patch.stopall)\n    a.f()\n"
    );
    assert_eq!(test.imports, ["import a", "from unittest import mock"]);
}

#[test]
fn indirect_process_changes_end_with_test() {
    let candidate = candidate(
        &["from a import f"],
        &["f()", "f()"],
        vec![change(0, &[], "environ"), change(1, &[], "folder")],
    );
    let test = written(&candidate, FUNCTIONS, None, &[]);
    assert_eq!(
        test.code,
        "@mock.patch.dict(os.environ)\ndef test_b(monkeypatch):\n    f()\n    monkeypatch.chdir(os.getcwd())\n    f()\n"
    );
    assert!(test.imports.contains(&"import os".to_owned()));
}

#[test]
fn clashing_import_goes_into_function() {
    let candidate = candidate(
        &["from a import define, f", "from b import g"],
        &["f(g)"],
        Vec::new(),
    );
    let test = written(&candidate, FUNCTIONS, None, &["define".to_owned()]);
    assert_eq!(
        test.code,
        "def test_b():\n    from a import define, f\n    f(g)\n"
    );
    assert_eq!(test.imports, ["from b import g"]);
}

#[test]
fn definitions_in_body_have_blank_lines_around() {
    let lines = [
        "x = 1",
        "@define(",
        "    a=1,",
        ")",
        "class A:",
        "    x = 2",
        "",
        "    y = 3",
        "y = A()",
        "def g():",
        "    pass",
    ];
    let candidate = candidate(&[], &lines, Vec::new());
    let test = written(&candidate, "def test_a():\n  assert 1\n", None, &[]);
    assert_eq!(
        test.code,
        "def test_b():\n  x = 1\n\n  @define(\n      a=1,\n  )\n  class A:\n      x = 2\n\n      y = 3\n\n  y = A()\n\n  \
         def g():\n      pass\n"
    );
}

#[test]
fn long_string_stays_unchanged() {
    let lines = ["text = \"\"\"a, ", "def b", "", "  c\"\"\"", "f(text)"];
    let candidate = candidate(&[], &lines, Vec::new());
    let test = written(&candidate, FUNCTIONS, None, &[]);
    assert_eq!(
        test.code,
        "def test_b():\n    text = \"\"\"a, \ndef b\n\n  c\"\"\"\n    f(text)\n"
    );
}

#[test]
fn imported_helper_of_pytest_is_reused() {
    let lines = ["with pytest.raises(IndexError):", "    f('a')"];
    let candidate = candidate(&["from a import f", "import pytest"], &lines, Vec::new());
    for (import, call, imports) in [
        (
            "from pytest import raises",
            "raises",
            &["from a import f"][..],
        ),
        (
            "from pytest import raises as fails",
            "fails",
            &["from a import f"],
        ),
        (
            "import pytest",
            "pytest.raises",
            &["from a import f", "import pytest"],
        ),
        (
            "from pytest import mark",
            "pytest.raises",
            &["from a import f", "import pytest"],
        ),
    ] {
        let test = written(&candidate, &format!("{import}\n\n{FUNCTIONS}"), None, &[]);
        let with = format!("    with {call}(IndexError):\n        f('a')\n");
        assert_eq!(test.code, format!("def test_b():\n{with}"), "{import}");
        assert_eq!(test.imports, imports, "{import}");
    }
}

#[test]
fn output_is_captured_as_the_runner_allows() {
    let lines = [
        "print(f('a'))",
        "assert capsys.readouterr().out.strip() == 'b'",
    ];
    let mut candidate = candidate(&["from a import f"], &lines, Vec::new());
    candidate.body.captured = Some(0..1);
    let test = written(&candidate, FUNCTIONS, None, &[]);
    assert_eq!(
        test.code,
        format!("def test_b(capsys):\n    {}\n    {}\n", lines[0], lines[1])
    );
    let test = written(&candidate, TEST_CASE, Some("TestA"), &[]);
    assert_eq!(
        test.code,
        "def test_b(self):\n    with contextlib.redirect_stdout(io.StringIO()) as stdout:\n        \
         print(f('a'))\n    self.assertEqual(stdout.getvalue().strip(), 'b')\n"
    );
    let imports = ["from a import f", "import contextlib", "import io"];
    assert_eq!(test.imports, imports);
}
