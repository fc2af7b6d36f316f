//! Converts errors of datasets, results and reports to errors for users.

use testwright_evals::RecordsError;
use testwright_evals::harness::ResultsError;
use testwright_evals::report;

use testwright_config::error::Error;

/// Converts an error of a records file. Invalid content is a usage error; a failure to read is an I/O error.
pub fn records(error: RecordsError) -> Error {
    use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
    match &error {
        RecordsError::Read { path, source }
            if !matches!(source.kind(), InvalidData | IsADirectory | NotFound) =>
        {
            Error::io(format!("read {}", path.display()), source)
        }
        RecordsError::Read { path, source } => {
            let error = Error::usage(format!("read {}", path.display())).cause(source);
            match source.kind() {
                NotFound => error.hint("pass the path of an existing file"),
                _ => error,
            }
        }
        _ => Error::usage(error.to_string()),
    }
}

/// Converts an error of storing results.
pub fn storing(error: ResultsError) -> Error {
    Error::io(
        format!("{} {}", error.doing, error.path.display()),
        &error.source,
    )
}

/// Converts an error of writing a report.
pub fn reporting(error: report::ReportError) -> Error {
    match &error {
        report::ReportError::Write { source, path } => {
            Error::io(format!("write {}", path.display()), source)
        }
        _ => Error::usage(error.to_string()),
    }
}
