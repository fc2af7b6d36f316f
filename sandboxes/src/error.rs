//! What can go wrong with a sandbox. None of it is ever shown to a model.

use std::path::PathBuf;

use nix::errno::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// No permission, a failing system call.
    System,
    /// The machine ran out of something: it says nothing of what was asked for.
    Exhausted(Shortage),
}

/// What a machine ran out of. Work that meets a shortage can succeed later, or on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// Descriptors of open files, of this process or of the system.
    Descriptors,
    Memory,
    Processes,
    /// Space, inodes or a quota.
    Disk,
    /// A database or another service that this machine needs does not answer.
    Service,
}

impl Shortage {
    /// The shortage that a failed system call reports, if it does.
    pub fn reported_by(error: &std::io::Error) -> Option<Self> {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMFILE | Errno::ENFILE) => Some(Shortage::Descriptors),
            Some(Errno::ENOMEM) => Some(Shortage::Memory),
            Some(Errno::ENOSPC | Errno::EDQUOT) => Some(Shortage::Disk),
            _ => match error.kind() {
                std::io::ErrorKind::OutOfMemory => Some(Shortage::Memory),
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Some(Shortage::Disk)
                }
                _ => {
                    let inner = error.get_ref()?.downcast_ref::<std::io::Error>()?;
                    Shortage::reported_by(inner)
                }
            },
        }
    }

    /// The same for a process that could not be started: the system refuses further ones with EAGAIN.
    pub fn reported_by_spawn(error: &std::io::Error) -> Option<Self> {
        match error.kind() {
            std::io::ErrorKind::WouldBlock => Some(Shortage::Processes),
            _ => Shortage::reported_by(error),
        }
    }

    /// The same from the words of a launcher of this crate, in which no foreign code has run yet.
    pub(crate) fn named_in(words: &str) -> Option<Self> {
        // The kernel also says ENOSPC if there are too many namespaces or mounts.
        let is_of_kernel = words.starts_with("make namespaces") || words.starts_with("mount ");
        let known = [
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
        Some(known.into_iter().find(is_named)?.1)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Shortage::Descriptors => "descriptors",
            Shortage::Memory => "memory",
            Shortage::Processes => "processes",
            Shortage::Disk => "disk",
            Shortage::Service => "service",
        }
    }

    pub fn hint(self) -> &'static str {
        match self {
            Shortage::Descriptors => "raise the limit of open files (`ulimit -n`, LimitNOFILE=)",
            Shortage::Memory => "free memory, or run fewer things at once",
            Shortage::Processes => "raise the limit of processes (`ulimit -u`, TasksMax=)",
            Shortage::Disk => "make room on the disk",
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
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        SandboxError {
            kind,
            message: message.into(),
            hint: None,
            log: None,
        }
    }

    /// What the machine ran out of, if that is the cause.
    pub fn shortage(&self) -> Option<Shortage> {
        match self.kind {
            ErrorKind::Exhausted(shortage) => Some(shortage),
            _ => None,
        }
    }

    pub fn exhausted(shortage: Shortage, message: impl Into<String>) -> Self {
        SandboxError::new(ErrorKind::Exhausted(shortage), message).hint(shortage.hint())
    }

    /// The error for a process of the host that could not be started.
    pub fn of_spawn(what: &str, e: &std::io::Error) -> Self {
        let message = format!("{what}: {e}");
        match Shortage::reported_by_spawn(e) {
            Some(shortage) => SandboxError::exhausted(shortage, message),
            None => SandboxError::new(ErrorKind::System, message),
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<std::io::Error> for SandboxError {
    fn from(e: std::io::Error) -> Self {
        match Shortage::reported_by(&e) {
            Some(shortage) => SandboxError::exhausted(shortage, e.to_string()),
            None => SandboxError::new(ErrorKind::System, e.to_string()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn shortages_are_told_by_error_number() {
        let of = |number: Errno| std::io::Error::from_raw_os_error(number as i32);
        let wrapped = std::io::Error::other(of(Errno::ENOSPC));
        assert_eq!(Shortage::reported_by(&wrapped), Some(Shortage::Disk));
        for (number, shortage) in [
            (Errno::EMFILE, Some(Shortage::Descriptors)),
            (Errno::ENFILE, Some(Shortage::Descriptors)),
            (Errno::ENOMEM, Some(Shortage::Memory)),
            (Errno::EDQUOT, Some(Shortage::Disk)),
            // A pipe that is not ready, in most places.
            (Errno::EAGAIN, None),
            (Errno::EACCES, None),
        ] {
            assert_eq!(Shortage::reported_by(&of(number)), shortage, "{number}");
        }
        let refused = Shortage::reported_by_spawn(&of(Errno::EAGAIN));
        assert_eq!(refused, Some(Shortage::Processes));
        let words = "make a pipe: Too many open files (os error 24)";
        assert_eq!(Shortage::named_in(words), Some(Shortage::Descriptors));
        let words = "make namespaces: No space left on device (os error 28)";
        assert_eq!(Shortage::named_in(words), None);
        let full = SandboxError::from(of(Errno::ENOSPC));
        assert_eq!(full.kind, ErrorKind::Exhausted(Shortage::Disk));
        assert!(full.hint.unwrap().contains("room"));
    }
}
