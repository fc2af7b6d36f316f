//! Escapes characters that are invisible, or that are displayed out of order.

use std::borrow::Cow;

/// Replaces control characters and bidirectional marks in a text with escapes such as `\u{1b}`. File names, file
/// content and program output may hold them.
///
/// Line ends (`\r ` too), tabs and form feeds stay, since they are part of the layout of source code. So do zero-width
/// characters: legitimate repositories use them in names and data, and a model must be able to copy the exact content.
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut result = String::new();
    // End of the text that is already copied.
    let mut copied_end = 0;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        if is_hidden(c, rest) {
            result.push_str(&text[copied_end..at]);
            result.extend(c.escape_default());
            copied_end = at + c.len_utf8();
        }
    }
    if copied_end == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[copied_end..]);
    Cow::Owned(result)
}

fn is_hidden(c: char, rest: &str) -> bool {
    match c {
        '\n' | '\t' | '\u{c}' => false,
        '\r' => !rest.starts_with('\n'),
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_marks_are_escaped() {
        for (text, expected) in [
            (
                "plain ä 漢字 👩\u{200d}💻\u{feff}\u{a0}\n\tx\r\n\u{c}",
                "plain ä 漢字 👩\u{200d}💻\u{feff}\u{a0}\n\tx\r\n\u{c}",
            ),
            (
                "a\x1b[31mb\x07\x08\x7f\0",
                "a\\u{1b}[31mb\\u{7}\\u{8}\\u{7f}\\u{0}",
            ),
            ("\u{9b}2J\u{85}", "\\u{9b}2J\\u{85}"),
            ("ok\rno\r", "ok\\rno\\r"),
            (
                "x\u{202e}cod.exe\u{2066}\u{200f}",
                "x\\u{202e}cod.exe\\u{2066}\\u{200f}",
            ),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(expected), expected, "it can be shown again");
        }
    }
}
