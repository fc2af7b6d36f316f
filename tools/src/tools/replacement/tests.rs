#![allow(clippy::unwrap_used)]
use super::*;
use crate::tool::ToolError;

const CODE: &str =
    "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n";

fn replaced(text: &str, old: &str, new: &str, line: Option<usize>) -> Result<String, String> {
    replace_text("a.py", text, old, new, line).map_err(|error: ToolError| error.to_string())
}

#[test]
fn unique_text_or_text_at_line_is_replaced() {
    let once = replaced(CODE, "def g(self)", "def h(self)", None).unwrap();
    assert_eq!(once, CODE.replace("def g", "def h"));
    let twice = replaced(CODE, "return 1", "return 2", None).unwrap_err();
    assert_eq!(
        twice,
        "`old` occurs 2 times in `a.py`; say which by `line`, or take more of the text around it:\n\
             \x20   3         return 1   in `def f(self)`\n\x20   6         return 1   in `def g(self)`"
    );
    let decorated =
        "def f():\n    pass\n\n@cached\ndef g():\n    pass\n\n@cached\ndef h():\n    pass\n";
    let of_both = replaced(decorated, "@cached", "", None).unwrap_err();
    assert!(
        of_both.ends_with("    4 @cached   in `def g()`\n    8 @cached   in `def h()`"),
        "{of_both}"
    );
    let second = replaced(CODE, "return 1", "return 2", Some(6)).unwrap();
    assert!(second.ends_with("def g(self):\n        return 2\n") && second.contains("return 1"));
    assert!(replaced(CODE, "return 1", "return 2", Some(5)).is_err());
}

#[test]
fn missing_text_error_shows_nearest_lines() {
    let none = replaced(CODE, "def gg(self):", "x", None).unwrap_err();
    assert!(none.contains("    5     def g(self):"), "{none}");
    let escaped = replaced("red = '\x1b[31m'\n", "'\\u{1b}[31m'", "''", None).unwrap_err();
    assert!(
        escaped.contains("only shown as escapes such as `\\u{1b}`"),
        "{escaped}"
    );
}
