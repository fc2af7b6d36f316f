//! Errors of datasets, results and reports, as users are shown them.

use testwright_evals::RecordsError;
use testwright_evals::harness::ResultsError;
use testwright_evals::report;

use testwright_config::error::Error;

/// A file that is not what it should be is the user's; one that the machine cannot read is not.
pub fn records(error: RecordsError) -> Error {
    use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
    match &error {
        RecordsError::Read { path, source }
            if !matches!(source.kind(), InvalidData | IsADirectory | NotFound) =>
        {
            Error::io(format!("read {}", path.display()), source)
        }
        RecordsError::Read { path, source } => {
            Error::usage(format!("read {}", path.display())).cause(source)
        }
        _ => Error::usage(error.to_string()),
    }
}

/// Results could not be kept.
pub fn storing(error: ResultsError) -> Error {
    Error::io(
        format!("{} {}", error.doing, error.path.display()),
        &error.source,
    )
}

/// A report could not be made.
pub fn reporting(error: report::ReportError) -> Error {
    match &error {
        report::ReportError::Write { source, path } => {
            Error::io(format!("write {}", path.display()), source)
        }
        _ => Error::usage(error.to_string()),
    }
}
