//! Reads files of records: JSON lines, a JSON array, or Parquet. Datasets and predictions are both such files. The
//! format is detected from the first bytes, not from the name.
//!
//! All problems of a file are reported together, with line numbers. Callers interpret the records.

mod bounded;
mod json;
mod parquet;

pub use parquet::{PARQUET, ParquetFileError, parquet_main};

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use testwright_sandboxes::hex::hex;
use testwright_sandboxes::plain_file;

use crate::untrusted_text::excerpt;

/// A file of records that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file could not be read.
    #[error("read {path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("read {path}: {}", listed(.problems, .place))]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Problems of the file, in its order.
        problems: Vec<Problem>,
        /// Unit for numbering records: `line` or `row`.
        place: &'static str,
    },
    /// The records are valid, but cannot be used as given.
    #[error("read {path}: {message}")]
    Unsuitable {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        message: String,
    },
    /// The file starts like a Parquet file, but cannot be converted.
    #[error("read {path}: it starts like a Parquet file, but {}", excerpt(&.source.to_string(), LENGTH))]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: parquet::ParquetFileError,
    },
}

impl RecordsError {
    pub(crate) fn unsuitable(path: &Path, message: String) -> RecordsError {
        let path = path.to_owned();
        RecordsError::Unsuitable { path, message }
    }
}

/// A problem in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line number, or row number in a Parquet file, starting at 1; 0 for the whole file.
    pub line: usize,
    /// Description of the problem, which may quote the file.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(line: usize, message: impl fmt::Display) -> Problem {
        Problem {
            line,
            message: message.to_string(),
        }
    }

    /// Returns the problem with its position, if it has one.
    pub(crate) fn describe(&self, place: &str) -> String {
        let message = excerpt(&self.message, LENGTH);
        match self.line {
            0 => message,
            line => format!("{place} {line}: {message}"),
        }
    }
}

/// Maximum problems listed in an error message; the rest are counted.
const SHOWN: usize = 10;
/// Maximum characters of a problem in a message, which may quote the file.
const LENGTH: usize = 300;
/// Number of problems after which reading stops.
const PROBLEMS: usize = 1_000;
/// Maximum bytes of a file.
const FILE: u64 = 2 << 30;
/// Maximum bytes of a record. It exceeds any patch or issue, and is small enough to be read many times.
const RECORD: usize = 64 << 20;
/// Maximum JSON values in a file; each takes more space in memory than in the file.
const VALUES: usize = 50_000_000;
/// Maximum JSON values in a record; the longest lists of tests have about ten thousand.
const RECORD_VALUES: usize = 1_000_000;

fn listed(problems: &[Problem], place: &str) -> String {
    let messages: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(|problem| problem.describe(place))
        .collect();
    let more = problems.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("; and {more} more"));
    messages.join("; ") + &more.unwrap_or_default()
}

/// A file, as named in its problems.
pub(crate) struct File<'a> {
    path: &'a Path,
    /// Unit for numbering records: line, row or instance.
    pub(crate) place: &'static str,
    /// SHA-256 of the content, in hex.
    pub(crate) sha256: String,
}

pub(crate) enum Content {
    /// JSON in one of its forms.
    Text(String),
    /// Records with their numbers, starting at 1.
    Records(Vec<(usize, Value)>),
}

impl<'a> File<'a> {
    pub(crate) fn read(path: &'a Path) -> Result<(Self, Content), RecordsError> {
        let bytes =
            plain_file::read_user_file(path, FILE).map_err(|source| RecordsError::Read {
                path: path.to_owned(),
                source,
            })?;
        File::of_bytes(path, bytes)
    }

    pub(crate) fn of_bytes(
        path: &'a Path,
        bytes: Vec<u8>,
    ) -> Result<(Self, Content), RecordsError> {
        let sha256 = hex(&Sha256::digest(&bytes));
        let file = |place| File {
            path,
            place,
            sha256,
        };
        if parquet::is_parquet(&bytes) {
            let lines = parquet::to_json_lines(&bytes).map_err(|source| RecordsError::Parquet {
                path: path.to_owned(),
                source,
            })?;
            return Ok((file("row"), Content::Text(lines)));
        }
        let text = String::from_utf8(bytes).map_err(|e| RecordsError::Read {
            path: path.to_owned(),
            source: std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!("the file is not UTF-8: {}", e.utf8_error()),
            ),
        })?;
        Ok((file("line"), Content::Text(text)))
    }

    pub(crate) fn wrong(&self, problems: Vec<Problem>) -> RecordsError {
        RecordsError::Content {
            path: self.path.to_owned(),
            problems,
            place: self.place,
        }
    }
}

/// An error in a record.
pub(crate) type RecordError = Box<dyn std::error::Error>;

/// Callback that receives each record and its line, and returns what is wrong with it.
pub(crate) type Take<'a> = &'a mut dyn FnMut(usize, Value) -> Result<(), RecordError>;

impl Content {
    /// Returns the records, each with the line or row where it begins.
    pub(crate) fn records(self, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
        let mut records = Vec::new();
        self.each(problems, &mut |line, value| {
            records.push((line, value));
            Ok(())
        });
        records
    }

    /// Passes the records to `take` one by one, for callers that keep only part of each. An error from `take` is a
    /// problem.
    pub(crate) fn each(self, problems: &mut Vec<Problem>, take: Take<'_>) {
        match self {
            Content::Text(text) => json::records(&text, problems, take),
            Content::Records(rows) => {
                for (line, value) in rows {
                    if let Err(error) = take(line, value) {
                        problems.push(Problem::new(line, &error));
                    }
                    if problems.len() >= PROBLEMS {
                        break;
                    }
                }
            }
        }
    }

    /// Passes the entries of a text that is a single object to `take`, each with its line and key. Returns `None` if
    /// the text is anything else, or a record, which is recognized by the key `of_a_record`.
    pub(crate) fn entries(
        &self,
        of_a_record: &str,
        problems: &mut Vec<Problem>,
        take: &mut dyn FnMut(usize, String, Value) -> Result<(), RecordError>,
    ) -> Option<()> {
        match self {
            Content::Text(text) => json::entries(text, of_a_record, problems, take),
            Content::Records(_) => None,
        }
    }
}
