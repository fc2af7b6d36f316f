//! How working on a task ends, and what an error means for it.

use super::client::RequestError;
use testwright_config::error::{Error, Kind};

/// What became of a task, where nothing failed.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEnd {
    /// With a note for people.
    Done(String),
    /// It waits for something else, until this time at the latest (milliseconds since 1970).
    Wait(i64),
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskError {
    /// Again from this time on.
    Later(i64),
    /// Again, a few times.
    Temporary(String),
    /// Never again.
    Permanent(String),
}

impl From<RequestError> for TaskError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Later(at) => TaskError::Later(at),
            // Not there, gone, not to be worked on.
            RequestError::Refused {
                status: 404 | 410 | 422,
                ..
            } => TaskError::Permanent(error.to_string()),
            // A token may be replaced, a lock be opened.
            RequestError::Refused { .. } | RequestError::Failed(_) => {
                TaskError::Temporary(error.to_string())
            }
        }
    }
}

impl From<Error> for TaskError {
    fn from(error: Error) -> Self {
        match error.kind {
            Kind::Usage | Kind::Unauthorized => TaskError::Permanent(error.with_cause()),
            _ => TaskError::Temporary(error.with_cause()),
        }
    }
}
