#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

const FILE: &str = "\"\"\"Docs.\"\"\"\nimport os\n\n\nclass TestA:\n    def test_one(self):\n        assert os\n\n\ndef helper():\n    pass\n";

fn fixture() -> Fixture {
    Fixture::new(&[
        ("tests/test_a.py", FILE.as_bytes()),
        ("tests/unit/__init__.py", b""),
        ("plain/x.txt", b""),
        ("pkg/__init__.py", b"from .core import Thing\n"),
        ("pkg/core.py", b"class Thing: pass\n"),
        ("tests/test_b.py", b"import pytest\n"),
        ("tests/short.py", b"class A: x = 1\n"),
    ])
}

#[test]
fn code_is_inserted_at_each_place() {
    let mut f = fixture();
    let code = "from pkg import Thing\n\ndef test_two(self):\n    with pytest.raises(ValueError):\n        Thing()\n";
    let text = f.text(
        "insert_function",
        json!({"path": "tests/test_a.py", "code": code, "imports": ["import pytest", "import os"], "after": "TestA.test_one"}),
    );
    assert_eq!(
        text,
        "Written to tests/test_a.py, lines 13-15.\nImports added: import pytest; from pkg import Thing\n"
    );
    f.text(
        "insert_function",
        json!({"path": "tests/test_a.py", "code": "def test_three(self): pass", "class": "TestA"}),
    );
    f.text(
        "insert_function",
        json!({"path": "tests/test_a.py", "code": "def test_four():\n    helper()"}),
    );
    assert_eq!(
        f.read("tests/test_a.py"),
        "\"\"\"Docs.\"\"\"\nimport os\n\nimport pytest\n\nfrom pkg import Thing\n\n\nclass TestA:\n    def test_one(self):\n        assert os\n\n    \
         def test_two(self):\n        with pytest.raises(ValueError):\n            Thing()\n\n    def test_three(self): pass\n\n\n\
         def helper():\n    pass\n\n\ndef test_four():\n    helper()\n"
    );
}

#[test]
fn new_packages_get_init_files() {
    let mut f = fixture();
    let code = "import pytest\n\n\n@pytest.mark.slow\ndef test_new():\n    pass\n";
    let text = f.text(
        "insert_function",
        json!({"path": "tests/new/test_new.py", "code": code}),
    );
    assert!(
        text.starts_with("Made tests/new/test_new.py, 6 lines.\nMade tests/new/__init__.py as"),
        "{text}"
    );
    assert_eq!(f.read("tests/new/test_new.py"), code);
    f.text(
        "insert_function",
        json!({"path": "tests/test_c.py", "code": code}),
    );
    f.text(
        "insert_function",
        json!({"path": "plain/deep/test_c.py", "code": code}),
    );
    let root = f.workspace.root();
    assert!(root.join("tests/new/__init__.py").exists());
    assert!(
        !root.join("tests/__init__.py").exists() && !root.join("plain/deep/__init__.py").exists()
    );
}

#[test]
fn refusals_leave_file_unchanged() {
    let mut f = fixture();
    let mut refuse = |extra: serde_json::Value| {
        let mut args =
            json!({"path": "tests/test_a.py", "code": "def test_x():\n    Thing(pytest)\n"});
        args.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        f.refusal("insert_function", args)
    };
    let text = refuse(json!({}));
    assert!(
        text.contains("`Thing` in `Thing(pytest)`: `from pkg import Thing`"),
        "{text}"
    );
    assert!(
        text.contains("`pytest` in `Thing(pytest)`: `import pytest`"),
        "{text}"
    );
    assert!(refuse(json!({"code": "def f(:\n  pass"})).contains("does not parse"));
    assert!(refuse(json!({"code": "x = 1"})).contains("complete function"));
    assert!(refuse(json!({"code": "def helper(): pass"})).contains("already (line 10)"));
    assert!(refuse(json!({"after": "TestA.test_on"})).contains("TestA.test_one"));
    assert!(refuse(json!({"class": "TestB"})).contains("TestA"));
    assert!(refuse(json!({"imports": ["pytest"]})).contains("not an import"));
    assert!(refuse(json!({"imports": ["from x import helper"]})).contains("take its place"));
    assert!(refuse(json!({"path": "x.txt"})).contains("is not a Python file"));
    assert!(refuse(json!({"path": "/etc/x.py"})).contains("outside"));
    let short = json!({"path": "tests/short.py", "code": "def f(self): pass", "class": "A"});
    f.refuses("insert_function", short, "on the line of `class`");
    assert!(f.workspace.changes().unwrap().is_empty());
}
