//! The file `results.jsonl`, with one graded prediction per line. An incomplete line is never used as a result. If
//! there are several results for the same prediction and instance, the last one counts.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;

use testwright_sandboxes::plain_file::{LineReader, MAX_RECORDS};

use super::{InstanceResult, ResultError};
use crate::untrusted_text::excerpt;

/// Name of the results file in its folder.
pub const FILE: &str = "results.jsonl";

/// A result with its original line; rewriting that line keeps its numbers unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredResult {
    /// The parsed result.
    pub graded: InstanceResult,
    /// The line without its line break.
    pub text: Vec<u8>,
}

/// Content of a results file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultsFile {
    /// Results by prediction and instance.
    pub by_name: BTreeMap<(String, String), StoredResult>,
    /// Anomalies in the file.
    pub remarks: Vec<String>,
}

/// Maximum lines that remarks name; the rest are counted.
const REMARKS: usize = 100;

/// Parses a line as grading writes it.
fn result(line: &[u8]) -> Result<InstanceResult, ResultError> {
    let graded: InstanceResult = serde_json::from_slice(line)?;
    graded.check()?;
    Ok(graded)
}

impl StoredResult {
    /// Writes the line.
    pub(crate) fn write(&self, mut file: impl Write) -> io::Result<()> {
        file.write_all(&self.text)?;
        file.write_all(b"\n")
    }
}

impl ResultsFile {
    /// Reads the results of a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn open(path: &Path) -> io::Result<ResultsFile> {
        ResultsFile::read(&mut LineReader::open(path, MAX_RECORDS)?)
    }

    /// Reads all lines.
    ///
    /// # Errors
    ///
    /// Fails if a line cannot be read.
    pub fn read<R: BufRead>(lines: &mut LineReader<R>) -> io::Result<ResultsFile> {
        let mut results = ResultsFile::default();
        let (mut again, mut invalid_lines) = (0, 0);
        while let Some(line) = lines.next_line()? {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match result(line) {
                Ok(graded) => again += usize::from(results.put(graded, line.to_vec())),
                Err(why) => {
                    if results.remarks.len() < REMARKS {
                        results.remarks.push(format!(
                            "line {} of {FILE} is not a valid result and was ignored: {}",
                            lines.number(),
                            excerpt(&why.to_string(), 300)
                        ));
                    }
                    invalid_lines += 1;
                }
            }
        }
        let last = lines.partial_line();
        match result(last) {
            Ok(graded) => again += usize::from(results.put(graded, last.to_vec())),
            Err(_) if last.iter().all(u8::is_ascii_whitespace) => {}
            Err(_) => results.remarks.push(format!(
                "the last line of {FILE} is incomplete and was ignored"
            )),
        }
        if invalid_lines > REMARKS {
            results.remarks.push(format!(
                "{invalid_lines} lines of {FILE} are not valid results and were ignored"
            ));
        }
        if again > 0 {
            results.remarks.push(format!(
                "{again} results of {FILE} were replaced by later ones for the same instance and prediction"
            ));
        }
        Ok(results)
    }

    /// Adds a result, and returns whether it replaced one for the same instance and prediction.
    pub fn put(&mut self, graded: InstanceResult, text: Vec<u8>) -> bool {
        let name = (graded.prediction.clone(), graded.instance_id.clone());
        self.by_name
            .insert(name, StoredResult { graded, text })
            .is_some()
    }
}

#[cfg(test)]
mod tests;
