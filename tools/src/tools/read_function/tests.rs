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
fn source_includes_decorators_and_imports() {
    let mut f = fixture();
    let expected = "pkg/a.py, A.f, lines 7-9\n    @w\n    def f(self):\n        return os\n\nIts imports:\nimport os\nfrom x import z as w\n";
    for args in [
        json!({"name": "A.f"}),
        json!({"name": "pkg.a.A.f"}),
        json!({"name": "f", "path": "pkg/a.py"}),
        json!({"name": "pkg/a.py::A::f"}),
    ] {
        if args["name"] == "f" {
            f.refuses("read_function", args, "A.f");
        } else {
            assert_eq!(f.text("read_function", args), expected);
        }
    }
}

#[test]
fn ambiguous_and_unknown_names_are_refused() {
    let mut f = fixture();
    assert_eq!(
        f.refusal("read_function", json!({"name": "f"})),
        "`f` is defined in 2 places; give `path` or a longer name:\npkg/a.py:8  A.f\npkg/b.py:5  B.f\n"
    );
    // A function's complete name takes precedence over the end of a method's name.
    assert!(
        f.text("read_function", json!({"name": "g"}))
            .starts_with("pkg/b.py, g, lines 1-2")
    );
    f.refuses(
        "read_function",
        json!({"name": "C.f"}),
        "There is: A.f, B.f",
    );
    f.refuses(
        "read_function",
        json!({"name": "zzz"}),
        "Nothing in the repository",
    );
    f.refuses(
        "read_function",
        json!({"name": "A.ff", "path": "pkg/a.py"}),
        "A.f",
    );
}

#[test]
fn long_classes_are_outlined() {
    let mut f = fixture();
    let text = f.text("read_function", json!({"name": "Long"}));
    assert!(text.contains("\n    size = 1\nMembers"), "{text}");
    assert!(text.contains("  4-5 def m0(self)") && text.lines().count() < 90);
}

#[test]
fn only_used_imports_and_constants_appear() {
    let constants: String = (0..12).map(|n| format!("K{n} = {n}\n")).collect();
    let all = (0..12)
        .map(|n| format!("K{n}"))
        .collect::<Vec<_>>()
        .join(", ");
    let file = format!(
        "import os, sys, re\nfrom typing import List\n\nTABLE = {{\n    1: 2,\n    3: 4,\n    5: 6,\n}}\nif os:\n    LIMIT = 1\n{constants}\n\
         def f(sys, x: List[int]):\n    \"\"\"Uses os and re.\"\"\"\n    re = TABLE\n    return re[LIMIT]\n\ndef g():\n    return {all}\n"
    );
    let mut f = Fixture::new(&[("a.py", file.as_bytes())]);
    let text = f.text("read_function", json!({"name": "f"}));
    let (_, dependencies) = text.split_once("\n\n").unwrap();
    assert_eq!(
        dependencies,
        "Its imports:\nfrom typing import List\n\nIts constants:\n\
         TABLE = {\n    1: 2,\n    3: 4,\n    5: 6,\n}\n    LIMIT = 1\n"
    );
    let text = f.text("read_function", json!({"name": "g"}));
    assert!(
        text.ends_with("K7 = 7\n… and 4 more: K8, K9, K10, K11\n"),
        "{text}"
    );
    assert!(!text.contains("Its imports"), "{text}");
}

#[test]
fn long_docstrings_are_cut() {
    let doc: String = (0..30).map(|n| format!("    line {n}\n")).collect();
    let file = format!(
        "class Box(object):\n    pass\n\ndef helper(a, b=1):\n    pass\n\ndef f(x):\n    \"\"\"First.\n\n{doc}    \"\"\"\n    return helper(Box(), x)\n"
    );
    let mut f = Fixture::new(&[("a.py", file.as_bytes())]);
    let text = f.text("read_function", json!({"name": "f"}));
    assert!(
        text.contains(
            "    line 1\n… 28 lines of the docstring\n    \"\"\"\n    return helper(Box(), x)\n"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("\nIt also uses:\n1 class Box(object)\n4 def helper(a, b=1)\n"),
        "{text}"
    );
}

#[test]
fn docstring_only_body_is_cut() {
    let lines: String = (0..30).map(|n| format!("    Line {n}.\n")).collect();
    let file = format!("def f():\n    \"\"\"Does it.\n{lines}    \"\"\"\n");
    let mut f = Fixture::new(&[("a.py", file.as_bytes())]);
    let text = f.text("read_function", json!({"name": "f"}));
    assert!(
        text.ends_with("Line 2.\n… 27 lines of the docstring\n    \"\"\"\n"),
        "{text}"
    );
}

#[test]
fn missing_name_shows_file_outline() {
    let mut f = Fixture::new(&[("a.py", b"def f(x):\n    pass\n")]);
    let outline = f.text("outline", json!({"path": "a.py"}));
    assert_eq!(f.text("read_function", json!({"path": "a.py"})), outline);
    assert!(outline.contains("def f(x)"), "{outline}");
    f.refuses("read_function", json!({}), "`name`");
}
