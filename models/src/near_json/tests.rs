#![allow(clippy::unwrap_used, clippy::expect_used)]
use serde_json::json;

use super::*;

#[test]
fn unambiguous_text_is_parsed() {
    let cases = [
        (r#"{"a": 1}"#, json!({"a": 1})),
        (r#"{"a": 1,}"#, json!({"a": 1})),
        (r#"{"a": [1, 2,],}"#, json!({"a": [1, 2]})),
        (
            "{'a': True, 'b': None, 'c': False}",
            json!({"a": true, "b": null, "c": false}),
        ),
        (r#"{'a': 'it\'s'}"#, json!({"a": "it's"})),
        (r#"{'a': "it's"}"#, json!({"a": "it's"})),
        ("{\"a\": \"x\ny\t\"}", json!({"a": "x\ny\t"})),
        (
            "{\"a\": \"\"\"def f():\n    return \"x\"\n\"\"\"}",
            json!({"a": "def f():\n    return \"x\"\n"}),
        ),
        (r#"{"a": "\d+\s"}"#, json!({"a": r"\d+\s"})),
        (r#"{"a": r"\d+\b"}"#, json!({"a": r"\d+\b"})),
        (r#"{a: 1, b_c: "x"}"#, json!({"a": 1, "b_c": "x"})),
        (r#"{"a": {"b": 1}"#, json!({"a": {"b": 1}})),
        (r#"{"a": ["x", {"b": 2"#, json!({"a": ["x", {"b": 2}]})),
        (r#"{"a": 1}}"#, json!({"a": 1})),
        (
            r#"{"a": "\ud83d\ude00 \u00e9",}"#,
            json!({"a": "\u{1f600} \u{e9}"}),
        ),
        ("{\"a\": -1.5e3, \"b\": 0,}", json!({"a": -1500.0, "b": 0})),
        ("  {}  ", json!({})),
        ("{'a': 'x\\\ny'}", json!({"a": "xy"})),
        (
            "{“a”：„x“，“b”: “print(\"y\")”}",
            json!({"a": "x", "b": "print(\"y\")"}),
        ),
    ];
    for (text, value) in cases {
        assert_eq!(read(text, true), Ok(value), "{text}");
    }
}

#[test]
fn ambiguous_text_is_a_positioned_problem() {
    let cases = [
        (r#"{"a": "say "hi" now"}"#, 1, 13, "inside a string"),
        (r#"{"a": 1 "b": 2}"#, 1, 9, "`,` or `}`"),
        ("{“a”: “say “hi””}", 1, 13, "`,` or `}`"),
        ("{\"a\": 1,\n \"b\": x y}", 2, 7, "needs quotes"),
        (r#"{"a": "x"#, 1, 9, "has no end"),
        (r#"{"a": 01}"#, 1, 7, "not a number"),
        (r#"{"a": "\d\b"}"#, 1, 10, "two ways"),
        (r#"{"a": 1, "a": 2,}"#, 1, 10, "twice"),
        (r#"{"a": 1} and so on"#, 1, 10, "has ended"),
        (r#"{"a"}"#, 1, 5, "`:` was expected"),
        (r#"{"a": "\u12"}"#, 1, 8, "hexadecimal"),
        (r#"{"a": "\ud800"}"#, 1, 8, "half a character"),
        ("", 1, 1, "ends where a value"),
    ];
    for (text, line, column, message) in cases {
        let problem = read(text, true).expect_err(text);
        assert_eq!(
            (problem.line, problem.column),
            (line, column),
            "{text}: {problem}"
        );
        assert!(problem.message.contains(message), "{text}: {problem}");
    }
}

#[test]
fn cut_text_is_never_completed() {
    for text in [r#"{"a": {"b": 1}"#, r#"{"a": ["x""#, r#"{"a": 1,"#] {
        assert!(read(text, true).is_ok(), "{text}");
        let problem = read(text, false).expect_err(text);
        assert!(problem.cut, "{text}: {problem}");
    }
}

#[test]
fn deep_nesting_is_a_problem() {
    let text = format!("{}'", "[".repeat(100_000));
    assert!(read(&text, true).unwrap_err().message.contains("deep"));
}

/// Reading a mutated text always ends, and a value that strict JSON accepts is unchanged.
#[test]
fn mutated_texts_never_panic() {
    let source = json!({
        "name": "insert_function",
        "arguments": {"file": "tests/test_a.py", "code": "def test_é():\n    assert \"x\" == 'y'\n", "n": [1, 2.5, true, null]}
    });
    let text = serde_json::to_string_pretty(&source).unwrap();
    assert_eq!(read(&text, false), Ok(source));
    let mut random = fastrand::Rng::with_seed(7);
    let junk = [
        "\"", "'", "\\", "{", "}", "[", "]", ",", ":", "\n", "é", "None", "```",
    ];
    for _ in 0..3000 {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..chars.len());
            match random.u8(0..3) {
                0 if chars.len() > 1 => {
                    chars.remove(at);
                }
                1 => {
                    let piece = junk[random.usize(0..junk.len())];
                    chars.splice(at..at, piece.chars());
                }
                _ => chars.truncate(at.max(1)),
            }
        }
        let broken: String = chars.into_iter().collect();
        if let Ok(strict) = serde_json::from_str::<Value>(&broken) {
            assert_eq!(read(&broken, true), Ok(strict), "{broken}");
        } else if let Err(problem) = read(&broken, true) {
            let line = broken.split('\n').nth(problem.line - 1).unwrap();
            assert!(problem.column <= line.chars().count() + 1);
        }
    }
}
