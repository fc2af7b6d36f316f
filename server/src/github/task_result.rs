//! The end of an attempt at a task, and the effects of errors.

use super::client::RequestError;
use testwright_config::error::{Error, Kind};

/// The end of an attempt without an error.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskEnd {
    /// The task is done, with a note for the log.
    Done(String),
    /// The task waits for something else, at most until this time (milliseconds since 1970).
    Wait(i64),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskError {
    /// Retry from this time on (milliseconds since 1970).
    Later(i64),
    /// Retry, but only a limited number of times.
    Temporary(String),
    /// Do not retry.
    Permanent(String),
}

impl From<RequestError> for TaskError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Later(at) => TaskError::Later(at),
            // Statuses for missing, deleted and invalid resources.
            RequestError::Refused {
                status: 404 | 410 | 422,
                ..
            } => TaskError::Permanent(error.to_string()),
            // Other refusals may be fixed: a token can be replaced, a conversation unlocked.
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
