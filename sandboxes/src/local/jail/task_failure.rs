//! How a task that could not be done ends.

/// An exit code and what to write to standard error.
pub type TaskFailure = (i32, String);
