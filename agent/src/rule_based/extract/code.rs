//! Minimal lexing of Python: brackets, strings and comments.

/// Returns the code of a line, and its trailing comment without the `#`.
pub fn split_note(line: &str) -> (&str, &str) {
    let mut scan = LineScan::new(line, None);
    scan.by_ref().for_each(drop);
    match scan.comment {
        Some(at) => (line[..at].trim_end(), line[at + 1..].trim()),
        None => (line.trim_end(), ""),
    }
}

/// Returns whether all brackets are closed and no string is left open.
pub fn balanced(source: &str) -> bool {
    let mut depth = 0;
    let mut open = None;
    for line in source.lines() {
        let mut scan = LineScan::new(line, open);
        depth += scan.by_ref().map(nesting).sum::<i32>();
        // A single quote does not extend past the end of a line.
        open = scan.quote.filter(|quote| quote.len() == 3);
        if depth < 0 {
            return false;
        }
    }
    depth == 0 && open.is_none()
}

/// Returns whether the code may have a string over several lines, whose white space counts.
pub fn has_long_string(code: &str) -> bool {
    code.contains("\"\"\"") || code.contains("'''")
}

/// Returns the brackets and commas of a line outside of strings and comments, each with its offset.
pub fn punctuation(line: &str) -> impl Iterator<Item = (usize, u8)> {
    LineScan::new(line, None)
}

/// Returns the offset after the bracket that closes the one at the start of a line.
pub(super) fn closing(line: &str) -> Option<usize> {
    let mut depth = 0;
    let last = punctuation(line).find(|mark| {
        depth += nesting(*mark);
        depth == 0
    });
    last.filter(|(_, mark)| *mark == b')').map(|(at, _)| at + 1)
}

/// Returns the change of the depth of brackets.
fn nesting((_, mark): (usize, u8)) -> i32 {
    match mark {
        b'(' | b'[' | b'{' => 1,
        b')' | b']' | b'}' => -1,
        _ => 0,
    }
}

/// A scan of a line for brackets and commas.
struct LineScan<'l> {
    line: &'l [u8],
    at: usize,
    /// Quotes of the string that is open.
    quote: Option<&'l [u8]>,
    comment: Option<usize>,
}

impl<'l> LineScan<'l> {
    fn new(line: &'l str, quote: Option<&'l [u8]>) -> Self {
        LineScan {
            line: line.as_bytes(),
            at: 0,
            quote,
            comment: None,
        }
    }
}

impl Iterator for LineScan<'_> {
    type Item = (usize, u8);

    fn next(&mut self) -> Option<(usize, u8)> {
        while self.at < self.line.len() {
            let (at, rest) = (self.at, &self.line[self.at..]);
            self.at += 1;
            match self.quote {
                Some(_) if rest[0] == b'\\' => self.at += 1,
                Some(mark) if rest.starts_with(mark) => {
                    self.at = at + mark.len();
                    self.quote = None;
                }
                Some(_) => {}
                None if rest.starts_with(b"\"\"\"") || rest.starts_with(b"'''") => {
                    self.at = at + 3;
                    self.quote = Some(&rest[..3]);
                }
                None if b"\"'".contains(&rest[0]) => self.quote = Some(&rest[..1]),
                None if rest[0] == b'#' => {
                    self.at = self.line.len();
                    self.comment = Some(at);
                }
                None if b"([{}]),".contains(&rest[0]) => return Some((at, rest[0])),
                None => {}
            }
        }
        None
    }
}
