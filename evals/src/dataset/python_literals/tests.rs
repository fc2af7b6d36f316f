#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn python_lists_are_parsed() {
    for (text, expected) in [
        ("[]", vec![]),
        (" ['a', 'b'] ", vec!["a", "b"]),
        ("['a',]", vec!["a"]),
        (
            r#"['t.py::a[x\'y]', "it's", 'a, b']"#,
            vec!["t.py::a[x'y]", "it's", "a, b"],
        ),
        (r"['\\d\n\xe9\u20ac\q']", vec!["\\d\né€\\q"]),
        ("['a' 'b'\n 'c']", vec!["a", "b", "c"]),
    ] {
        assert_eq!(python_list(text).unwrap(), expected, "{text}");
    }
    for text in [
        "",
        "a",
        "[a]",
        "['a'",
        "['a",
        "[1]",
        "['a\\",
        "['\\xzz']",
        "('a',)",
    ] {
        assert_eq!(python_list(text), None, "{text}");
    }
}
