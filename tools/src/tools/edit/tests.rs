#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

const FILE: &str = "import a\r\n\r\ndef test_a():\r\n    assert a.f() == 0\r\n";

#[test]
fn small_change_is_made_and_shown() {
    let mut f = Fixture::new(&[
        ("tests/test_a.py", FILE.as_bytes()),
        ("tests/roots/index.rst", b"Title\n=====\n"),
    ]);
    let text = f.text(
        "edit",
        json!({"path": "tests/test_a.py", "old": "== 0", "new": "== 1"}),
    );
    assert_eq!(
        text,
        "Edited tests/test_a.py.\n@@ -1,4 +1,4 @@\n import a\n \n def test_a():\n-    assert a.f() == 0\n+    assert a.f() == 1\n"
    );
    assert_eq!(f.read("tests/test_a.py"), FILE.replace("== 0", "== 1"));
    f.text(
        "edit",
        json!({"path": "tests/roots/index.rst", "old": "Title\n=====", "new": "Other\n====="}),
    );
    assert_eq!(f.read("tests/roots/index.rst"), "Other\n=====\n");
}

#[test]
fn missing_old_text_creates_file() {
    let mut f = Fixture::new(&[("a.txt", b"a\n")]);
    let answer = f.text("edit", json!({"path": "roots/b.txt", "new": "b"}));
    assert_eq!(answer, "Made roots/b.txt, 1 line.\n");
    assert_eq!(f.read("roots/b.txt"), "b\n");
    let refused = f.refusal("edit", json!({"path": "a.txt", "new": "b"}));
    assert!(refused.contains("exists already"), "{refused}");
    assert_eq!(f.read("a.txt"), "a\n");
}

#[test]
fn function_is_replaced_and_file_restored() {
    let file = "import a\n\n\n@a.mark\ndef test_a():\n    assert a.f() == 0\n";
    let mut f = Fixture::new(&[("tests/test_a.py", file.as_bytes())]);
    let edit = |what: serde_json::Value| {
        let mut edit = json!({"path": "tests/test_a.py"});
        let fields = what.as_object().unwrap().clone();
        edit.as_object_mut().unwrap().extend(fields);
        edit
    };
    let code = "import b\n\ndef test_a():\n    assert b.f()\n";
    let text = f.text("edit", edit(json!({"function": "test_a", "new": code})));
    assert_eq!(
        text,
        "Rewritten in tests/test_a.py, lines 6-7.\nImports added: import b\nIts decorators stay: @a.mark\n"
    );
    assert_eq!(
        f.read("tests/test_a.py"),
        "import a\nimport b\n\n\n@a.mark\ndef test_a():\n    assert b.f()\n"
    );
    let both = edit(json!({"function": "test_a", "old": "b.f()", "new": "x"}));
    f.refuses("edit", both, "not both");
    let nothing = edit(json!({"function": "test_a"}));
    f.refuses("edit", nothing, "`new`");
    let text = f.text("edit", edit(json!({})));
    assert!(text.contains("tests/test_a.py"), "{text}");
    assert_eq!(f.read("tests/test_a.py"), file);
    let answer = f.text("edit", edit(json!({"function": "test_a", "new": ""})));
    assert_eq!(answer, "Deleted `test_a` from tests/test_a.py.\n");
}

#[test]
fn refusals_leave_file_unchanged() {
    let mut f = Fixture::new(&[("tests/test_a.py", FILE.as_bytes())]);
    let mut refuse = |old: &str, new: &str| {
        f.refusal(
            "edit",
            json!({"path": "tests/test_a.py", "old": old, "new": new}),
        )
    };
    assert!(refuse("", "x").contains("`old` is empty"));
    assert!(refuse("a.f()", "a.f(").contains("would not parse"));
    assert!(refuse("a.f()", "b.f()").contains("`b` in"));
    assert!(refuse("a", "b").contains(" times in `tests/test_a.py`"));
    assert_eq!(f.read("tests/test_a.py"), FILE);
}
