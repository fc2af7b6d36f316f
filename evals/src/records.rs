//! Files of records as the field has them: JSON lines, one JSON array, or Parquet. Datasets and predictions are both such
//! files. What a file is, it says by how it begins, whatever its name.
//!
//! Everything that is wrong in a file is told at once, with lines. What a record means is left to its reader.

mod parquet;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::foreign_text::shown;

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
    /// What is wrong with predictions as a whole.
    #[error("read {path}: {message}")]
    Predictions { path: PathBuf, message: String },
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
        write!(f, "line {}: {}", self.line, shown(&self.message, LENGTH))
    }
}

/// Problems that an error's text names; the rest is counted.
const SHOWN: usize = 10;
/// Characters of a problem that are shown: it may quote what is in the file.
const LENGTH: usize = 300;
/// With so many problems, nothing more is read.
const PROBLEMS: usize = 1_000;
/// Bytes of a file.
const FILE: u64 = 2 << 30;
/// Bytes of a record: more than any patch or issue takes, and little enough to be read many times over.
const RECORD: usize = 64 << 20;
/// JSON values of a file: each takes more room in memory than in the file.
const VALUES: usize = 50_000_000;

fn listed(problems: &[Problem], place: &str) -> String {
    let shown: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(|problem| {
            let message = shown(&problem.message, LENGTH);
            format!("{place} {}: {message}", problem.line)
        })
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
        let bytes = bytes(path).map_err(wrong)?;
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

/// A file that may be a pipe, and must not be without an end.
fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE {
        let message = format!("it is larger than {} GiB", FILE >> 30);
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            message,
        ));
    }
    Ok(bytes)
}

fn too_long(line: usize) -> Problem {
    Problem {
        line,
        message: format!("the record is longer than {} MiB", RECORD >> 20),
    }
}

/// The records that were read, as long as there is room for them.
#[derive(Default)]
struct Room {
    values: usize,
}

impl Room {
    fn take(&mut self, line: usize, value: &Value) -> Result<(), Problem> {
        self.values += count(value);
        if self.values <= VALUES {
            return Ok(());
        }
        Err(Problem {
            line,
            message: format!("the file holds more than {VALUES} values"),
        })
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// JSON lines; a line that is no JSON does not hide the next.
fn lines(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let mut values = Vec::new();
    let mut room = Room::default();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() {
            continue;
        }
        if problems.len() >= PROBLEMS {
            break;
        }
        if content.len() > RECORD {
            problems.push(too_long(line));
            continue;
        }
        match serde_json::from_str(content) {
            Ok(value) => {
                if let Err(problem) = room.take(line, &value) {
                    problems.push(problem);
                    break;
                }
                values.push((line, value));
            }
            Err(e) => problems.push(Problem {
                line,
                message: format!("it is not JSON: {}", reason(&e)),
            }),
        }
    }
    values
}

/// Where one is in a text, and on which line.
struct Position<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Position<'a> {
    fn go(&mut self, bytes: usize) {
        let passed = &self.text.as_bytes()[self.at..self.at + bytes];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at += bytes;
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn pass_space(&mut self) {
        self.go(space(self.rest()));
    }

    /// What a record may take of the rest, and whether that is all.
    fn record(&self) -> (&'a str, bool) {
        let rest = self.rest();
        if rest.len() <= RECORD {
            return (rest, true);
        }
        let end = (0..=RECORD).rev().find(|end| rest.is_char_boundary(*end));
        (&rest[..end.unwrap_or_default()], false)
    }
}

/// One array; values are read one by one to know where each begins.
fn array(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let mut values = Vec::new();
    if let Err(problem) = elements(text, &mut values) {
        problems.push(problem);
    }
    values
}

fn elements(text: &str, values: &mut Vec<(usize, Value)>) -> Result<(), Problem> {
    let mut room = Room::default();
    let mut position = Position {
        text,
        at: 0,
        line: 1,
    };
    position.go(text.find('[').map_or(0, |i| i + 1));
    loop {
        position.pass_space();
        if values.is_empty() && position.rest().starts_with(']') {
            break;
        }
        let line = position.line;
        let no_end = Problem {
            line,
            message: "the array has no end".to_owned(),
        };
        let (record, is_all) = position.record();
        let mut stream = serde_json::Deserializer::from_str(record).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                room.take(line, &value)?;
                values.push((line, value));
            }
            Some(Err(e)) if e.is_eof() && !is_all => return Err(too_long(line)),
            Some(Err(e)) => {
                let line = line + e.line().saturating_sub(1);
                let message = format!("it is not JSON: {}", reason(&e));
                return Err(Problem { line, message });
            }
            None => return Err(no_end),
        }
        position.go(stream.byte_offset());
        position.pass_space();
        match position.rest().chars().next() {
            Some(',') => position.go(1),
            Some(']') => break,
            other => {
                let message = match other {
                    Some(c) => format!("it is not JSON: expected `,` or `]`, found `{c}`"),
                    None => no_end.message,
                };
                let line = position.line;
                return Err(Problem { line, message });
            }
        }
    }
    position.go(1);
    position.pass_space();
    if position.rest().is_empty() {
        return Ok(());
    }
    Err(Problem {
        line: position.line,
        message: "there is something behind the array".to_owned(),
    })
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
