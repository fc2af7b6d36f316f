//! Fits text to the width of a terminal.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Returns the number of columns of a terminal; `None` if the stream is something else.
pub(super) fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(stream).ok()?.ws_col;
    (columns > 0).then_some(usize::from(columns))
}

/// Shortens text to at most `max_len` characters, if possible at the end of a word.
pub(super) fn cut(text: &str, max_len: usize) -> Cow<'_, str> {
    if text.chars().count() <= max_len {
        return Cow::Borrowed(text);
    }
    let mut short: String = text.chars().take(max_len.saturating_sub(1)).collect();
    // A long word, such as a path, is cut: otherwise little of the text would be left.
    if !text[short.len()..].starts_with(' ')
        && let Some(end) = short.rfind(' ').filter(|end| *end > short.len() / 4 * 3)
    {
        short.truncate(end);
    }
    short.truncate(short.trim_end().len());
    short.push('…');
    Cow::Owned(short)
}

/// Wraps lines at words. The rest of a line is indented to its last column, or to the text after its label. Words longer
/// than the width are not broken, and styles have no width.
pub fn wrap(text: &str, width: usize) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| wrap_line(line, width))
        .collect();
    lines.join("\n")
}

fn wrap_line(line: &str, width: usize) -> String {
    if visible_len(line) <= width {
        return line.to_owned();
    }
    let indent = hanging_indent(line).min(width / 2);
    let mut wrapped = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let len = visible_len(word.trim_end_matches(' '));
        if len > 0 && column > indent && column + len > width {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = indent;
        }
        wrapped.push_str(word);
        column += visible_len(word);
    }
    wrapped
}

/// Returns the column of the text after the last gap of a line, and after a label such as `note:`.
fn hanging_indent(line: &str) -> usize {
    let plain = anstream::adapter::strip_str(line).to_string();
    let start = plain.trim_end().rfind("  ").map_or(0, |gap| gap + 2);
    let (before, text) = plain.split_at(start);
    let label = match text.split_once(": ") {
        Some((label, _)) if label.len() <= 5 && label.chars().all(|c| c.is_ascii_lowercase()) => {
            label.len() + 2
        }
        _ => 0,
    };
    before.chars().count() + label
}

fn visible_len(text: &str) -> usize {
    anstream::adapter::strip_str(text)
        .to_string()
        .chars()
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_at_words_with_hanging_indent() {
        for (text, width, expected) in [
            ("note: one two three", 13, "note: one two\n      three"),
            (
                "  --out <DIR>  Folder for\nshort",
                21,
                "  --out <DIR>  Folder\n          for\nshort",
            ),
            ("averyveryverylongword b", 13, "averyveryverylongword\nb"),
            (
                "\x1b[1mone\x1b[0m two three",
                7,
                "\x1b[1mone\x1b[0m two\nthree",
            ),
        ] {
            assert_eq!(wrap(text, width), expected);
        }
    }

    #[test]
    fn cut_text_ends_with_ellipsis() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("one more word", 11), "one more…");
        assert_eq!(cut("one more word", 9), "one more…");
        assert_eq!(cut("one averylongword", 14), "one averylong…");
    }
}
