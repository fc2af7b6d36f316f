//! Line ends of a file, which stay as they are when the text changes.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// The line ends of a file. Like Python, a lone carriage return counts as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEnding {
    /// Line feeds.
    Lf,
    /// A carriage return before each line feed.
    CrLf,
    /// Carriage returns.
    Cr,
    /// Several kinds.
    Mixed(MixedEnds),
}

/// The line ends of a file with several kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedEnds {
    /// The text with `\n` line ends.
    text: String,
    /// The end of each line; the last line may have none.
    ends: Vec<&'static str>,
}

impl LineEnding {
    /// Converts a text to `\n` line ends, and returns its own.
    pub fn split(text: &str) -> (String, LineEnding) {
        if !text.contains('\r') {
            return (text.to_owned(), LineEnding::Lf);
        }
        let (mut plain, mut ends) = (String::with_capacity(text.len()), Vec::new());
        let mut rest = text;
        while let Some(at) = rest.find(['\r', '\n']) {
            let end = match &rest[at..] {
                crlf if crlf.starts_with("\r\n") => "\r\n",
                cr if cr.starts_with('\r') => "\r",
                _ => "\n",
            };
            plain.push_str(&rest[..at]);
            plain.push('\n');
            ends.push(end);
            rest = &rest[at + end.len()..];
        }
        plain.push_str(rest);
        let first = ends.first().copied().unwrap_or("\n");
        let kind = match first {
            _ if ends.iter().any(|end| *end != first) => LineEnding::Mixed(MixedEnds {
                text: plain.clone(),
                ends,
            }),
            "\r\n" => LineEnding::CrLf,
            "\r" => LineEnding::Cr,
            _ => LineEnding::Lf,
        };
        (plain, kind)
    }

    /// Converts a text to these line ends. In a file with several kinds, unchanged lines keep theirs, and a new line
    /// gets that of the line that it replaces or follows.
    pub fn join(&self, text: &str) -> String {
        let text = text.replace("\r\n", "\n");
        match self {
            LineEnding::Lf => text,
            LineEnding::CrLf => text.replace('\n', "\r\n"),
            LineEnding::Cr => text.replace('\n', "\r"),
            LineEnding::Mixed(mixed) => mixed.join(&text),
        }
    }
}

impl MixedEnds {
    fn join(&self, text: &str) -> String {
        let old: Vec<&str> = self.text.split_inclusive('\n').collect();
        let new: Vec<&str> = text.split_inclusive('\n').collect();
        let mut out = String::with_capacity(text.len());
        let mut end = self.ends.first().copied().unwrap_or("\n");
        for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
            let mut replaced = op.old_range();
            if op.tag() == DiffTag::Delete {
                continue;
            }
            for line in &new[op.new_range()] {
                let own = replaced.next().and_then(|at| self.ends.get(at));
                end = own.copied().unwrap_or(end);
                match line.strip_suffix('\n') {
                    Some(line) => {
                        out.push_str(line);
                        out.push_str(end);
                    }
                    None => out.push_str(line),
                }
            }
        }
        out
    }
}
