//! Lines of a file, as several tools show them.

/// The longest line that is shown whole, in characters.
const WIDTH: usize = 400;

/// Lines `first` to `last` (from 1, inclusive), each with its number.
pub fn numbered(text: &str, first: usize, last: usize) -> String {
    let digits = last.to_string().len();
    let mut out = String::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .take(last)
        .skip(first.saturating_sub(1))
    {
        let line = cut(line.trim_end_matches('\r'), WIDTH);
        out.push_str(format!("{:>digits$}  {line}", at + 1).trim_end());
        out.push('\n');
    }
    out
}

/// Lines `first` to `last` (from 1, inclusive) as they are, to be taken over word for word.
pub fn plain(text: &str, first: usize, last: usize) -> String {
    let lines = text.lines().take(last).skip(first.saturating_sub(1));
    lines.fold(String::new(), |mut out, line| {
        out.push_str(&cut(line.trim_end_matches('\r'), WIDTH));
        out.push('\n');
        out
    })
}

/// At most `width` characters of a line, saying how many are left out.
pub fn cut(line: &str, width: usize) -> String {
    let length = line.chars().count();
    if length <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width).collect();
    format!("{kept}… ({} more characters)", length - width)
}

/// `1 file`, `2 files`.
pub fn count(number: usize, what: &str) -> String {
    match (number, what) {
        (1, _) => format!("1 {what}"),
        (_, "match") => format!("{number} matches"),
        _ => format!("{number} {what}s"),
    }
}

/// These lines as they stand in the file, counted from 1, both included.
pub fn lines_between(text: &str, first: usize, last: usize) -> String {
    let lines = text.split_inclusive('\n').skip(first.saturating_sub(1));
    lines.take((last + 1).saturating_sub(first)).collect()
}
