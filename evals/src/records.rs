//! Files of records as the field has them: JSON lines, or one JSON array. Datasets and predictions are both such files.
//!
//! Everything that is wrong in a file is told at once, with lines. What a record means is left to its reader.

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
    #[error("read {path}: {}", listed(.problems))]
    Content {
        path: PathBuf,
        problems: Vec<Problem>,
    },
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
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

fn listed(problems: &[Problem]) -> String {
    let shown: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(Problem::to_string)
        .collect();
    let more = problems.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("; "))
}

/// The text of a file, and who to blame for what is wrong in it.
pub(crate) struct File<'a> {
    path: &'a Path,
    pub(crate) text: String,
}

impl<'a> File<'a> {
    pub(crate) fn read(path: &'a Path) -> Result<Self, RecordsError> {
        let text = std::fs::read_to_string(path).map_err(|source| RecordsError::Read {
            path: path.to_owned(),
            source,
        })?;
        Ok(File { path, text })
    }

    pub(crate) fn wrong(&self, problems: Vec<Problem>) -> RecordsError {
        RecordsError::Content {
            path: self.path.to_owned(),
            problems,
        }
    }
}

/// The records of a text with the line on which each begins.
pub(crate) fn records(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
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
