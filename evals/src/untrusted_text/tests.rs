#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn invisible_characters_are_escaped() {
    assert_eq!(
        excerpt("a\u{1b}[1m\nb\u{202e}", 99),
        "a\\u{1b}[1m b\\u{202e}"
    );
    assert_eq!(excerpt("äbcd", 2), "äb…");
    assert_eq!(escape_lines("a\n\tb\r\u{9b}"), "a\n\tb\\u{d}\\u{9b}");
}

#[test]
fn names_are_short_and_visible() {
    assert_eq!(check_name("Ωtter (run 2) 日本 é"), Ok(()));
    assert_eq!(
        check_name("a\u{200d}b").unwrap_err().to_string(),
        "contains an invisible character (U+200D)"
    );
    assert!(check_name(&"ä".repeat(MAX_NAME_CHARS)).is_ok());
    assert!(check_name(&"ä".repeat(MAX_NAME_CHARS + 1)).is_err());
}
