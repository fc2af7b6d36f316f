//! The file `results.jsonl`, with one graded prediction per line. An incomplete line is never used as a result. If
//! there are several results for the same prediction and instance, the last one counts.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::sample;

    fn parse(bytes: &[u8]) -> ResultsFile {
        ResultsFile::read(&mut LineReader::new(bytes)).unwrap()
    }

    fn line(graded: &InstanceResult) -> String {
        serde_json::to_string(graded).unwrap() + "\n"
    }

    #[test]
    fn incomplete_lines_are_ignored_last_result_wins() {
        let all = sample::results(&["a"], 4, 1);
        let mut later = all[0].clone();
        later.strict.reason = "later".to_owned();
        let mut text: String = all.iter().map(line).collect();
        text += &line(&later);
        let cut = line(&all[1]);
        for length in 1..cut.len() - 1 {
            let results = parse(format!("{text}{}", &cut[..length]).as_bytes());
            assert_eq!(results.by_name.len(), 4);
            let name = (later.prediction.clone(), later.instance_id.clone());
            assert_eq!(results.by_name[&name].graded.strict.reason, "later");
            assert_eq!(results.remarks.len(), 2, "{:?}", results.remarks);
        }
        // A complete line without a final newline is valid.
        let results_file = parse(format!("{text}{}", cut.trim_end()).as_bytes());
        assert_eq!(results_file.remarks.len(), 1, "{:?}", results_file.remarks);
    }

    #[test]
    fn a_broken_line_does_not_hide_the_next() {
        let all = sample::results(&["a"], 2, 1);
        let broken = line(&all[0])[..40].to_owned();
        let mut bytes = format!("{broken}{}", line(&all[1])).into_bytes();
        bytes.extend(b"\xff\xfe\n\n");
        bytes.extend(line(&all[0]).into_bytes());
        let results = parse(&bytes);
        assert_eq!(results.by_name.len(), 1);
        let first = results.by_name.values().next().unwrap();
        assert_eq!(first.graded.instance_id, all[0].instance_id);
        assert_eq!(first.text, line(&all[0]).trim_end().as_bytes());
        assert!(results.remarks[0].starts_with("line 1 of results.jsonl is not a valid result"));
        assert!(results.remarks[1].starts_with("line 2 of results.jsonl"));
        assert_eq!(parse(b""), ResultsFile::default());
    }
}
