//! Errors of setting up a jail.

use std::error::Error;
use std::fmt::{self, Display};

/// A failed step of the setup.
#[derive(Debug, thiserror::Error)]
pub(super) struct JailError {
    step: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Display for JailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.step),
            None => f.write_str(&self.step),
        }
    }
}

impl JailError {
    /// Creates an error without a cause from the system.
    pub(super) fn new(step: impl Display) -> Self {
        JailError {
            step: step.to_string(),
            source: None,
        }
    }

    /// Creates an error from the last system error.
    pub(super) fn last(step: impl Display) -> Self {
        JailError {
            source: Some(std::io::Error::last_os_error().into()),
            ..JailError::new(step)
        }
    }
}

pub(super) type Result<T, E = JailError> = std::result::Result<T, E>;

/// Adds the failed step to an error.
pub(super) trait StepContext<T> {
    fn doing(self, step: impl Display) -> Result<T>;
}

impl<T, E: Error + Send + Sync + 'static> StepContext<T> for std::result::Result<T, E> {
    fn doing(self, step: impl Display) -> Result<T> {
        self.map_err(|error| JailError {
            source: Some(Box::new(error)),
            ..JailError::new(step)
        })
    }
}
