//! Why a tool gives no answer.

/// Three kinds, by who sees them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// For the model: what was wrong with the call, and what to do instead. The workspace is as it was.
    #[error("{0}")]
    Refused(String),
    /// Not for the model: the sandbox, the disk or a limit of ours failed.
    #[error("{0}")]
    Broken(String),
    /// For no one: the caller no longer waits for an answer.
    #[error("the call was cancelled")]
    Cancelled,
}

impl ToolError {
    /// For the model.
    pub fn refused(text: impl Into<String>) -> Self {
        ToolError::Refused(text.into())
    }
}

impl From<std::io::Error> for ToolError {
    fn from(e: std::io::Error) -> Self {
        ToolError::Broken(e.to_string())
    }
}
