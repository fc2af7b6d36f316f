#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

fn fixture() -> Fixture {
    let long: String = (0..80)
        .map(|n| format!("    def m{n}(self):\n        pass\n"))
        .collect();
    let long = format!("class Long:\n    \"\"\"Docs.\"\"\"\n    size = 1\n{long}");
    Fixture::new(&[
        (
            "pkg/a.py",
            b"import os\nfrom x import (y,\n    z as w)\nimport sys\n\nclass A:\n    @w\n    def f(self):\n        return os\n\n    def g(self):\n        pass\n",
        ),
        ("pkg/b.py", b"def g():\n    pass\n\nclass B:\n    def f(self):\n        pass\n"),
        ("pkg/long.py", long.as_bytes()),
    ])
}

#[test]
fn source_with_decorators_and_used_imports() {
    let mut f = fixture();
    let expected = "pkg/a.py, A.f, lines 7-9\n7      @w\n8      def f(self):\n9          return os\n\nIts imports:\nimport os\nfrom x import z as w\n";
    for args in [
        json!({"name": "A.f"}),
        json!({"name": "pkg.a.A.f"}),
        json!({"name": "f", "path": "pkg/a.py"}),
        json!({"name": "pkg/a.py::A::f"}),
    ] {
        if args["name"] == "f" {
            assert!(f.refusal("read_function", args).contains("A.f"));
        } else {
            assert_eq!(f.text("read_function", args), expected);
        }
    }
}

#[test]
fn ambiguous_and_unknown_names() {
    let mut f = fixture();
    assert_eq!(
        f.refusal("read_function", json!({"name": "f"})),
        "`f` is defined in 2 places; give `path` or a longer name:\npkg/a.py:8  A.f\npkg/b.py:5  B.f\n"
    );
    // The whole name of a function wins over a method's end.
    assert!(
        f.text("read_function", json!({"name": "g"}))
            .starts_with("pkg/b.py, g, lines 1-2")
    );
    assert!(
        f.refusal("read_function", json!({"name": "C.f"}))
            .contains("There is: A.f, B.f")
    );
    assert!(
        f.refusal("read_function", json!({"name": "zzz"}))
            .contains("Nothing in the repository")
    );
    assert!(
        f.refusal("read_function", json!({"name": "A.ff", "path": "pkg/a.py"}))
            .contains("A.f")
    );
}

#[test]
fn long_classes_are_outlined() {
    let mut f = fixture();
    let text = f.text("read_function", json!({"name": "Long"}));
    assert!(text.contains("3      size = 1\nMembers"), "{text}");
    assert!(text.contains("  4-5 def m0(self)") && text.lines().count() < 90);
}
