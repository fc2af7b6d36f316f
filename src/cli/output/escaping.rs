//! Escapes characters that control a terminal or disguise text, for example as `\u{1b}`.

use std::borrow::Cow;

/// Escapes text of any number of lines. Newlines and tabs are unchanged.
pub fn escape(text: &str) -> Cow<'_, str> {
    escaped(text, &|c, before, after| {
        let line_end = c == '\n' || (c == '\r' && after == Some('\n'));
        !line_end && c != '\t' && is_hidden(c, before, after)
    })
}

/// Escapes text as one line. A newline is escaped too, because untrusted text could use it to forge a line.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escaped(text, &|c, before, after| {
        c != '\t' && is_hidden(c, before, after)
    })
}

/// Escapes JSON text. Hidden characters occur only in strings, where JSON has its own escapes.
pub(super) fn in_json(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\n' && is_hidden(c, before, rest.peek().copied()) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                result.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            result.push(c);
        }
        before = Some(c);
    }
    result
}

type IsHidden<'f> = &'f dyn Fn(char, Option<char>, Option<char>) -> bool;

fn escaped<'t>(text: &'t str, hides: IsHidden<'_>) -> Cow<'t, str> {
    let mut result = String::new();
    // End of the part that is already copied, in bytes.
    let mut done = 0;
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if hides(c, before, rest.peek().map(|(_, after)| *after)) {
            result.push_str(&text[done..at]);
            result.extend(c.escape_default());
            done = at + c.len_utf8();
        }
        before = Some(c);
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[done..]);
    Cow::Owned(result)
}

/// Returns whether a character is invisible or misleading: control characters (C0, DEL, C1), marks that change the text
/// direction, and characters without width or shape.
///
/// The two joiners are part of words in some scripts and of emoji, so they are allowed between non-ASCII characters.
fn is_hidden(c: char, before: Option<char>, after: Option<char>) -> bool {
    let is_foreign = |c: Option<char>| c.is_some_and(|c| !c.is_ascii());
    match c {
        '\u{200c}' | '\u{200d}' => !(is_foreign(before) && is_foreign(after)),
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180e}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests;
