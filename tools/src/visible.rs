//! What a model cannot see, or would see in another place than it stands, as visible escapes.

use std::borrow::Cow;

/// The text of an answer, with control characters and marks that turn the direction of text as `\u{1b}`. Names of
/// files, what programs print and the lines of files may hold them.
///
/// Line ends (`\r\n` too), tabs and form feeds stay: they are part of how source is laid out. So do characters without
/// width: names and data of honest repositories hold them, and what a model copies has to be what is in the file.
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut result = String::new();
    // Up to where the text was taken over.
    let mut done = 0;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        if is_hidden(c, rest) {
            result.push_str(&text[done..at]);
            result.extend(c.escape_default());
            done = at + c.len_utf8();
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[done..]);
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
    fn what_steers_or_turns_text_shows() {
        for (text, shown) in [
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
            assert_eq!(visible(text), shown);
            assert_eq!(visible(shown), shown, "it can be shown again");
        }
    }
}
