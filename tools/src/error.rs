//! Errors of tools, in three kinds by audience.

/// The result of a tool, or of a step of one.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// Three kinds, by who sees them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// An error for the model: it explains what was wrong with the call. The workspace is unchanged.
    #[error("{0}")]
    Refused(String),
    /// Hidden from the model: the sandbox, the disk or one of the toolbox's limits failed.
    #[error("{0}")]
    Broken(String),
    /// Seen by no caller: the call was cancelled, so its answer is not needed.
    #[error("the call was cancelled")]
    Cancelled,
}

impl ToolError {
    /// Creates an error for the model.
    pub fn refused(text: impl Into<String>) -> Self {
        ToolError::Refused(text.into())
    }
}

/// Creates a [`ToolError::Refused`] from a format string and its arguments.
macro_rules! refusal {
    ($($text:tt)*) => {
        $crate::error::ToolError::Refused(format!($($text)*))
    };
}
pub(crate) use refusal;

impl From<std::io::Error> for ToolError {
    fn from(e: std::io::Error) -> Self {
        ToolError::Broken(e.to_string())
    }
}
