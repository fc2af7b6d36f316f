#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

#[test]
fn lines_are_replaced_inserted_and_deleted() {
    let mut f = Fixture::new(&[
        ("a.py", b"a = 1\nb = 2\nc = 3"),
        ("w.txt", b"x\r\ny\r\n"),
        ("e.txt", b""),
    ]);
    let mut edit = |path: &str, first: usize, last: usize, text: &str| {
        f.text(
            "edit_lines",
            json!({"path": path, "first": first, "last": last, "text": text}),
        )
    };
    assert_eq!(
        edit("a.py", 2, 2, "b = 4\nd = 5"),
        "a.py: 1 line replaced by 2; it has now 4 lines.\n1  a = 1\n2  b = 4\n3  d = 5\n4  c = 3\n"
    );
    for ((first, last, text), expected) in [
        (
            (1, 0, "z = 0"),
            "1 line inserted before line 1; it has now 5",
        ),
        ((6, 5, "end = 1"), "1 line added at the end; it has now 6"),
        ((2, 3, ""), "2 lines deleted; it has now 4"),
    ] {
        let answer = edit("a.py", first, last, text);
        assert!(answer.contains(expected), "{answer}");
    }
    edit("w.txt", 1, 1, "z");
    edit("e.txt", 1, 0, "z");
    assert_eq!(f.read("a.py"), "z = 0\nd = 5\nc = 3\nend = 1\n");
    assert_eq!(f.read("w.txt"), "z\r\ny\r\n");
    assert_eq!(f.read("e.txt"), "z\n");
}

#[test]
fn refusals_show_the_resulting_text() {
    let mut f = Fixture::new(&[
        ("a.py", b"def f():\n    return 1\n"),
        ("old.py", b"print 'a' if\nx = 1\n"),
    ]);
    let refused = f.refusal(
        "edit_lines",
        json!({"path": "a.py", "first": 2, "last": 2, "text": "    return (1\n"}),
    );
    assert!(
        refused.contains("would not parse") && refused.contains("2      return (1"),
        "{refused}"
    );
    f.refuses(
        "edit_lines",
        json!({"path": "a.py", "first": 4, "last": 4, "text": ""}),
        "2 lines",
    );
    f.refuses(
        "edit_lines",
        json!({"path": "a.py", "first": 0, "last": 1, "text": ""}),
        "from 1",
    );
    assert_eq!(f.read("a.py"), "def f():\n    return 1\n");
    // Existing errors do not cause a refusal.
    f.text(
        "edit_lines",
        json!({"path": "old.py", "first": 2, "last": 2, "text": "x = 2"}),
    );
}
