//! Formats lines of a file for several tools.

use std::fmt::Display;

/// Maximum characters of a line that is shown whole.
const MAX_WIDTH: usize = 400;

/// Returns lines `first` to `last` (from 1, inclusive), each with its number.
pub(super) fn numbered(text: &str, first: usize, last: usize) -> String {
    let digits = last.to_string().len();
    let mut out = String::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .take(last)
        .skip(first.saturating_sub(1))
    {
        let line = cut(line.trim_end_matches('\r'), MAX_WIDTH);
        out.push_str(format!("{:>digits$}  {line}", at + 1).trim_end());
        out.push('\n');
    }
    out
}

/// Returns lines `first` to `last` (from 1, inclusive) without numbers, to be copied word for word.
pub(super) fn plain(text: &str, first: usize, last: usize) -> String {
    let lines = text.lines().take(last).skip(first.saturating_sub(1));
    lines.fold(String::new(), |mut out, line| {
        out.push_str(&cut(line.trim_end_matches('\r'), MAX_WIDTH));
        out.push('\n');
        out
    })
}

/// Ends the last line of a text, if there is one.
pub(super) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Lists at most `max_lines` lines; `more` formats the number of those left out.
pub(super) fn listed(
    lines: &[impl Display],
    max_lines: usize,
    more: impl FnOnce(usize) -> String,
) -> String {
    let mut shown: Vec<String> = lines
        .iter()
        .take(max_lines)
        .map(|line| format!("{line}\n"))
        .collect();
    if lines.len() > max_lines {
        shown.push(more(lines.len() - max_lines) + "\n");
    }
    shown.concat()
}

/// Cuts a line to at most `width` characters, with a note of how many are left out.
pub(super) fn cut(line: &str, width: usize) -> String {
    let length = line.chars().count();
    if length <= width {
        return line.to_owned();
    }
    let beginning: String = line.chars().take(width).collect();
    format!("{beginning}… ({} more characters)", length - width)
}

/// Formats a count: `1 file`, `2 files`.
pub fn count(number: impl ToString, what: &str) -> String {
    let number = number.to_string();
    match (number.as_str(), what) {
        ("1", _) => format!("1 {what}"),
        (_, "match") => format!("{number} matches"),
        _ => format!("{number} {what}s"),
    }
}

/// Returns these lines unchanged, counted from 1, both included.
pub(super) fn lines_between(text: &str, first: usize, last: usize) -> String {
    let lines = text.split_inclusive('\n').skip(first.saturating_sub(1));
    lines.take((last + 1).saturating_sub(first)).collect()
}
