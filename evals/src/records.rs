//! Files of records as the field has them: JSON lines, one JSON array, or Parquet. Datasets and predictions are both such
//! files. What a file is, it says by how it begins, whatever its name.
//!
//! Everything that is wrong in a file is told at once, with lines. What a record means is left to its reader.

mod parquet;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("read {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("read {path}: {}", listed(.problems, .place))]
    Content {
        path: PathBuf,
        problems: Vec<Problem>,
        /// What problems are counted by: `line` or `row`.
        place: &'static str,
    },
    #[error("read {path}: it begins as a Parquet file does, and {message}")]
    Parquet { path: PathBuf, message: String },
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1; of a Parquet file the row.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Problems that an error's text names; the rest is counted.
const SHOWN: usize = 10;

fn listed(problems: &[Problem], place: &str) -> String {
    let shown: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(|problem| format!("{place} {}: {}", problem.line, problem.message))
        .collect();
    let more = problems.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("; "))
}

/// Who to blame for what is wrong in a file.
pub(crate) struct File<'a> {
    path: &'a Path,
    place: &'static str,
}

pub(crate) enum Content {
    /// JSON in one of its forms.
    Text(String),
    /// Records with their rows, from 1.
    Rows(Vec<(usize, Value)>),
}

impl<'a> File<'a> {
    pub(crate) fn read(path: &'a Path) -> Result<(Self, Content), RecordsError> {
        let wrong = |source| RecordsError::Read {
            path: path.to_owned(),
            source,
        };
        let bytes = std::fs::read(path).map_err(wrong)?;
        let content = if parquet::is_parquet(&bytes) {
            let rows = parquet::rows(bytes).map_err(|message| RecordsError::Parquet {
                path: path.to_owned(),
                message,
            })?;
            Content::Rows(rows)
        } else {
            let text = String::from_utf8(bytes).map_err(|e| {
                let message = format!("it is not UTF-8: {}", e.utf8_error());
                wrong(std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    message,
                ))
            })?;
            Content::Text(text)
        };
        let place = content.place();
        Ok((File { path, place }, content))
    }

    pub(crate) fn wrong(&self, problems: Vec<Problem>) -> RecordsError {
        RecordsError::Content {
            path: self.path.to_owned(),
            problems,
            place: self.place,
        }
    }
}

impl Content {
    /// What its records are counted by.
    pub(crate) fn place(&self) -> &'static str {
        match self {
            Content::Text(_) => "line",
            Content::Rows(_) => "row",
        }
    }

    /// The records with the line, or row, on which each begins.
    pub(crate) fn records(self, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
        match self {
            Content::Text(text) => records(&text, problems),
            Content::Rows(rows) => rows,
        }
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for Content {
    fn from(text: &T) -> Content {
        Content::Text(text.as_ref().to_owned())
    }
}

/// The records of a text with the line on which each begins.
fn records(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('[') {
        array(text, problems)
    } else {
        lines(text, problems)
    }
}

/// JSON lines; a line that is no JSON does not hide the next.
fn lines(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let mut values = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(content) {
            Ok(value) => values.push((line, value)),
            Err(e) => problems.push(Problem {
                line,
                message: format!("it is not JSON: {}", reason(&e)),
            }),
        }
    }
    values
}

/// One array; values are read one by one to know where each begins.
fn array(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let mut values = Vec::new();
    let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
    let start = text.find('[').map_or(0, |i| i + 1);
    let mut at = start;
    loop {
        at += space(&text[at..]);
        if values.is_empty() && text[at..].starts_with(']') {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => values.push((line_at(at), value)),
            Some(Err(e)) => {
                let line = line_at(at) + e.line().saturating_sub(1);
                let message = format!("it is not JSON: {}", reason(&e));
                problems.push(Problem { line, message });
                return values;
            }
            None => {
                let message = "the array has no end".to_owned();
                problems.push(Problem {
                    line: line_at(at),
                    message,
                });
                return values;
            }
        }
        at += stream.byte_offset();
        at += space(&text[at..]);
        match text[at..].chars().next() {
            Some(',') => at += 1,
            Some(']') => break,
            other => {
                let message = match other {
                    Some(c) => format!("it is not JSON: expected `,` or `]`, found `{c}`"),
                    None => "the array has no end".to_owned(),
                };
                problems.push(Problem {
                    line: line_at(at),
                    message,
                });
                return values;
            }
        }
    }
    let rest = text.get(at + 1..).unwrap_or_default();
    if !rest.trim().is_empty() {
        let message = "there is something behind the array".to_owned();
        problems.push(Problem {
            line: line_at(at + 1 + space(rest)),
            message,
        });
    }
    values
}

fn space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// What serde_json says, without the line that it counts itself.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (column {})", error.column()),
        None => text,
    }
}
