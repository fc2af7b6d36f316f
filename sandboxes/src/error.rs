//! What can go wrong with a sandbox. None of it is ever shown to a model.

use std::path::PathBuf;

/// `message` is lower-case and fit to follow "failed to …"; `hint` says what the user can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SandboxError {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// Where more can be read.
    pub log: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user asked for something that cannot be: an unknown recipe key, a file that is not there.
    Input,
    /// The engine cannot be reached, or is not allowed to be.
    Unavailable,
    /// An image or saved state is not there.
    NotFound,
    /// An environment could not be built; the message names the step and the log.
    Build,
    /// The sandbox is gone (stopped, killed, out of memory).
    Dead,
    /// No sandbox started, although it was tried several times; a later try may succeed.
    NotStarted,
    /// No room, no permission, a failing system call.
    System,
}

impl SandboxError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        SandboxError {
            kind,
            message: message.into(),
            hint: None,
            log: None,
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<std::io::Error> for SandboxError {
    fn from(e: std::io::Error) -> Self {
        let error = SandboxError::new(ErrorKind::System, e.to_string());
        match e.kind() {
            std::io::ErrorKind::StorageFull => {
                error.hint("make room on the disk, or set another cache folder")
            }
            _ => error,
        }
    }
}
