#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

const FILE: &str = "import a\r\n\r\nclass T:\r\n    @a.mark\r\n    def f(self):\r\n        pass\r\n\r\n    x = 1\r\n";

#[test]
fn replacement_keeps_line_ends() {
    let mut f = Fixture::new(&[("t.py", FILE.as_bytes())]);
    let text = f.text(
        "rewrite_function",
        json!({"path": "t.py", "name": "T.f", "code": "import b\ndef f(self):\n    b.x()"}),
    );
    assert_eq!(
        text,
        "Rewritten in t.py, lines 6-7.\nImports added: import b\nIts decorators stay: @a.mark\n"
    );
    assert_eq!(
        f.read("t.py"),
        "import a\r\nimport b\r\n\r\nclass T:\r\n    @a.mark\r\n    def f(self):\r\n        b.x()\r\n\r\n    x = 1\r\n"
    );
}

#[test]
fn lost_decorators_are_named() {
    let file = "import a\n\n@a.one\n@a.two(1)\ndef f():\n    pass\n\n\nclass T:\n    @a.mark\n    def f(self):\n        pass\n\n    \
                @a.mark\n    def g(self):\n        pass\n";
    let mut f = Fixture::new(&[("t.py", file.as_bytes())]);
    let mut rewrite = |name: &str, code: &str| {
        let arguments = json!({"path": "t.py", "name": name, "code": code});
        f.text("rewrite_function", arguments)
    };
    let text = rewrite("f", "@a.two(1)\ndef h():\n    pass\n");
    assert!(
        text.ends_with("`f` is gone; there is now `h`.\nDecorators that are gone: @a.one\n"),
        "{text}"
    );
    let class =
        "class T:\n    def f(self):\n        pass\n\n    @a.mark\n    def k(self):\n        pass\n";
    let text = rewrite("T", class);
    assert!(
        text.ends_with("Decorators that are gone: @a.mark of `g`\n"),
        "{text}"
    );
    let text = rewrite("T", class);
    assert!(!text.contains("gone"), "{text}");
}

#[test]
fn unindented_string_lines_are_reported() {
    let mut f = Fixture::new(&[("t.py", FILE.as_bytes())]);
    let mut rewrite = |code: &str| {
        f.text(
            "rewrite_function",
            json!({"path": "t.py", "name": "T.f", "code": code}),
        )
    };
    let text = rewrite("def f(self):\n    return '''\n    a\n      b\n    '''\n");
    assert!(
        text.contains("\n2 lines inside of strings kept the indentation that you gave"),
        "{text}"
    );
    let as_given = rewrite("    def f(self):\n        return '''\n    a'''\n");
    assert!(!as_given.contains("kept"), "{as_given}");
}

#[test]
fn empty_code_deletes_the_function() {
    let mut f = Fixture::new(&[("t.py", FILE.as_bytes())]);
    let delete = |name: &str| json!({"path": "t.py", "name": name, "code": " \n"});
    let text = f.text("rewrite_function", delete("T.f"));
    assert_eq!(text, "Deleted `T.f` from t.py.\n");
    assert_eq!(f.read("t.py"), "import a\r\n\r\nclass T:\r\n    x = 1\r\n");
    let mut only = Fixture::new(&[("t.py", b"class T:\n    def f(self):\n        pass\n")]);
    only.text("rewrite_function", delete("T.f"));
    assert_eq!(only.read("t.py"), "class T:\n    pass\n");
}

#[test]
fn refusals_leave_file_unchanged() {
    let mut f = Fixture::new(&[
        ("t.py", FILE.as_bytes()),
        ("two.py", b"def f(): 1\ndef f(): 2\n"),
    ]);
    let mut refuse = |path: &str, name: &str, code: &str| {
        f.refusal(
            "rewrite_function",
            json!({"path": path, "name": name, "code": code}),
        )
    };
    assert!(refuse("t.py", "T.g", "def g(): pass").contains("T.f"));
    assert!(refuse("t.py", "T.f", "def f(self):\n    nope()").contains("`nope` in `nope()`"));
    assert!(refuse("t.py", "T.f", "def f(self:\n    pass").contains("does not parse"));
    assert!(refuse("t.py", "T.f", "pass").contains("complete function"));
    assert!(refuse("two.py", "f", "def f(): 3").contains("lines 1, 2"));
    assert_eq!(f.read("t.py"), FILE);
    assert!(f.workspace.changes().unwrap().is_empty());
}
