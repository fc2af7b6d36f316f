#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn terminal_controls_are_escaped() {
    for (text, expected) in [
        ("plain ä € 漢字 👍\n\tx\r\n", "plain ä € 漢字 👍\n\tx\r\n"),
        ("a\x1b[31mb\x07\x08\x7f", "a\\u{1b}[31mb\\u{7}\\u{8}\\u{7f}"),
        ("\u{9b}2J\u{90}q\u{85}", "\\u{9b}2J\\u{90}q\\u{85}"),
        ("ok\rno", "ok\\rno"),
        ("\x1b]8;;http://x\x1b\\y", "\\u{1b}]8;;http://x\\u{1b}\\y"),
        ("x\u{202e}cod.exe\u{2066}", "x\\u{202e}cod.exe\\u{2066}"),
        (
            "a\u{200b}b\u{feff}\u{ad}\u{2028}",
            "a\\u{200b}b\\u{feff}\\u{ad}\\u{2028}",
        ),
        ("a\u{200d}b", "a\\u{200d}b"),
        (
            "👩\u{200d}💻 می\u{200c}خواهم",
            "👩\u{200d}💻 می\u{200c}خواهم",
        ),
        ("\u{e0041}\0", "\\u{e0041}\\u{0}"),
    ] {
        assert_eq!(escape(text), expected);
    }
    assert_eq!(escape_line("a\nerror: b\r\n\t"), "a\\nerror: b\\r\\n\t");
}

#[test]
fn only_newlines_and_tabs_are_unchanged() {
    for c in (0..0x300)
        .filter_map(char::from_u32)
        .filter(|c| c.is_control())
    {
        let is_unchanged = escape(&c.to_string()).contains(c);
        assert_eq!(is_unchanged, c == '\n' || c == '\t', "{c:?}");
    }
}

#[test]
fn escaping_preserves_json_value() {
    let value = serde_json::json!({"a\u{9b}": ["\x1b[2J\x7f", "x\u{202e}\u{e0041}", "ä\n\t"]});
    let text = in_json(&serde_json::to_string_pretty(&value).unwrap());
    assert!(
        !text.chars().any(|c| c != '\n' && is_hidden(c, None, None)),
        "{text}"
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&text).unwrap(),
        value
    );
}
