//! Errors of sandboxes. They are never shown to a model.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error of a sandbox. `message` is lower-case and says what failed; `hint` tells the user what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SandboxError {
    /// Category of the error, for callers that handle some of them.
    pub kind: ErrorKind,
    /// Description of the failure, in lower case.
    pub message: String,
    /// Advice for the user, one imperative. `None` if nothing can be advised.
    pub hint: Option<String>,
    /// Log file with details.
    pub log: Option<PathBuf>,
    /// Whether a build failed for a reason outside of the code, such as the network, a full disk or a timeout.
    pub is_external: bool,
}

/// Category of a [`SandboxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Invalid input, such as an unknown recipe key or a missing file.
    Input,
    /// The engine cannot be reached, or access to it is denied.
    Unavailable,
    /// An image or saved state does not exist.
    NotFound,
    /// An environment could not be built. The message names the step and the log.
    Build,
    /// The sandbox has ended (stopped, killed, out of memory).
    Dead,
    /// Several attempts to start a sandbox failed; a later attempt may succeed.
    NotStarted,
    /// Missing permission, or a failed system call.
    System,
    /// The machine ran out of a resource. The failure says nothing about the request.
    Exhausted(Shortage),
}

/// A resource that the machine lacks. Affected work can succeed later, or on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// File descriptors, of this process or of the system.
    Descriptors,
    /// Main memory.
    Memory,
    /// Processes and threads, by a limit of the user or of the system.
    Processes,
    /// Disk space, inodes or a quota.
    Disk,
    /// A database or another service that this machine needs.
    Service,
}

impl Shortage {
    /// Returns the shortage that a failed system call reports, if any.
    pub fn reported_by(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::OutOfMemory => Some(Shortage::Memory),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Shortage::Disk),
            _ => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EMFILE | Errno::ENFILE) => Some(Shortage::Descriptors),
                _ => Shortage::reported_by(error.get_ref()?.downcast_ref()?),
            },
        }
    }

    /// Returns the shortage behind a failed process start: if there are too many processes, the system reports EAGAIN.
    pub fn reported_by_spawn(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::WouldBlock => Some(Shortage::Processes),
            _ => Shortage::reported_by(error),
        }
    }

    /// Recognizes a shortage in a message of this crate's launcher, which has not run untrusted code at that point.
    pub(crate) fn in_message(words: &str) -> Option<Self> {
        // The kernel also reports ENOSPC if there are too many namespaces or mounts.
        let is_of_kernel = words.starts_with("make namespaces") || words.starts_with("mount ");
        let shortages = [
            (Errno::EMFILE, Shortage::Descriptors),
            (Errno::ENFILE, Shortage::Descriptors),
            (Errno::ENOMEM, Shortage::Memory),
            (Errno::EAGAIN, Shortage::Processes),
            (Errno::ENOSPC, Shortage::Disk),
            (Errno::EDQUOT, Shortage::Disk),
        ];
        let is_named = |(number, shortage): &(Errno, Shortage)| {
            words.contains(number.desc()) && !(is_of_kernel && *shortage == Shortage::Disk)
        };
        Some(shortages.into_iter().find(is_named)?.1)
    }

    /// Returns the name of the resource in lower case, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Shortage::Descriptors => "descriptors",
            Shortage::Memory => "memory",
            Shortage::Processes => "processes",
            Shortage::Disk => "disk",
            Shortage::Service => "service",
        }
    }

    /// Returns advice for the user, one imperative.
    pub fn hint(self) -> &'static str {
        match self {
            Shortage::Descriptors => "raise the limit of open files (`ulimit -n`, LimitNOFILE=)",
            Shortage::Memory => "free memory, or reduce the number of parallel runs",
            Shortage::Processes => "raise the limit of processes (`ulimit -u`, TasksMax=)",
            Shortage::Disk => "free disk space",
            Shortage::Service => "check that the database and the artifact store are running",
        }
    }
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Shortage::Descriptors => "too many files are open",
            Shortage::Memory => "the machine is out of memory",
            Shortage::Processes => "the machine can start no more processes",
            Shortage::Disk => "the disk is full",
            Shortage::Service => "the database or the artifact store does not answer",
        })
    }
}

impl SandboxError {
    /// Creates an error that has neither a hint nor a log.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        SandboxError {
            kind,
            message: message.into(),
            hint: None,
            log: None,
            is_external: false,
        }
    }

    /// Creates an error of kind [`ErrorKind::Input`].
    pub fn input(message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::Input, message)
    }

    /// Creates an error of kind [`ErrorKind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::Unavailable, message)
    }

    /// Creates an error of kind [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::NotFound, message)
    }

    /// Creates an error of kind [`ErrorKind::Dead`].
    pub fn dead(message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::Dead, message)
    }

    /// Creates an error of kind [`ErrorKind::System`].
    pub fn system(message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::System, message)
    }

    /// Returns the resource that the machine lacks, if that is the cause.
    pub fn shortage(&self) -> Option<Shortage> {
        match self.kind {
            ErrorKind::Exhausted(shortage) => Some(shortage),
            _ => None,
        }
    }

    /// Creates an error of kind [`ErrorKind::Exhausted`], with the hint of the shortage.
    pub fn exhausted(shortage: Shortage, message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::Exhausted(shortage), message).hint(shortage.hint())
    }

    /// Creates the error for a process on the host that could not be started.
    pub fn from_spawn_error(what: &str, e: &io::Error) -> Self {
        let message = format!("{what}: {e}");
        match Shortage::reported_by_spawn(e) {
            Some(shortage) => SandboxError::exhausted(shortage, message),
            None => SandboxError::system(message),
        }
    }

    /// Adds what could not be undone after the failure, as one clause.
    pub(crate) fn with_leftover(mut self, leftover: &str) -> Self {
        self.message = format!("{}; {leftover}", self.message);
        self
    }

    /// Sets the hint, replacing any earlier one.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns the causes of an error, innermost last.
pub(crate) fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

impl From<io::Error> for SandboxError {
    fn from(e: io::Error) -> Self {
        match Shortage::reported_by(&e) {
            Some(shortage) => SandboxError::exhausted(shortage, e.to_string()),
            None => SandboxError::system(e.to_string()),
        }
    }
}

/// Converts the panic of a task on another thread.
impl From<tokio::task::JoinError> for SandboxError {
    fn from(e: tokio::task::JoinError) -> Self {
        SandboxError::system(e.to_string())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_map_to_shortages() {
        let of = |number: Errno| std::io::Error::from_raw_os_error(number as i32);
        let wrapped = std::io::Error::other(of(Errno::ENOSPC));
        assert_eq!(Shortage::reported_by(&wrapped), Some(Shortage::Disk));
        for (number, shortage) in [
            (Errno::EMFILE, Some(Shortage::Descriptors)),
            (Errno::ENFILE, Some(Shortage::Descriptors)),
            (Errno::ENOMEM, Some(Shortage::Memory)),
            (Errno::EDQUOT, Some(Shortage::Disk)),
            // In most places EAGAIN means that a pipe is not ready.
            (Errno::EAGAIN, None),
            (Errno::EACCES, None),
        ] {
            assert_eq!(Shortage::reported_by(&of(number)), shortage, "{number}");
        }
        let refused = Shortage::reported_by_spawn(&of(Errno::EAGAIN));
        assert_eq!(refused, Some(Shortage::Processes));
        let words = "make a pipe: Too many open files (os error 24)";
        assert_eq!(Shortage::in_message(words), Some(Shortage::Descriptors));
        let words = "make namespaces: No space left on device (os error 28)";
        assert_eq!(Shortage::in_message(words), None);
        let full = SandboxError::from(of(Errno::ENOSPC));
        assert_eq!(full.kind, ErrorKind::Exhausted(Shortage::Disk));
        assert!(full.hint.unwrap().contains("disk space"));
    }
}
