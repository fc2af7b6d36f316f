//! The error type of the command line: what failed, why, and what to do about it.
//!
//! Lower-level libraries have their own error types, which are converted when a command ends. The outcome of
//! a run (accepted, out of budget, …) is data in its record, and becomes an exit code through [`Kind`] as
//! well.

use std::fmt;
use std::path::PathBuf;

use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::{SandboxError, Shortage};

/// The result of a command or one of its steps.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error, which decides the exit code. Exit code 0 means that a test was accepted, or that the
/// command succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Exit code 1: no test within the budget, or no result from the approach.
    Nothing,
    /// Exit code 2: bad input or usage; the same command will fail again.
    Usage,
    /// Exit code 2: a server rejects this token, so all further requests to it will fail as well.
    Unauthorized,
    /// Exit code 3: a failure of an engine, a network or a disk, or a limit of the machine. It says nothing
    /// about the model or approach.
    Infrastructure,
    /// Exit code 3: a service is not available now, but may be later.
    Unavailable,
    /// Exit code 3: the machine ran out of a resource, such as disk space.
    Exhausted(Shortage),
    /// Exit code 130: Ctrl-C.
    Interrupted,
}

impl Kind {
    /// Returns the exit code of the command line.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Nothing => 1,
            Kind::Usage | Kind::Unauthorized => 2,
            Kind::Infrastructure | Kind::Unavailable | Kind::Exhausted(_) => 3,
            Kind::Interrupted => 130,
        }
    }

    /// Returns whether the failure says nothing about the model or approach.
    pub fn is_infrastructure(self) -> bool {
        matches!(
            self,
            Kind::Infrastructure | Kind::Unavailable | Kind::Exhausted(_)
        )
    }

    /// Returns the resource that the machine lacked, if that is the cause. A retry may succeed later or on
    /// another machine.
    pub fn shortage(self) -> Option<Shortage> {
        match self {
            Kind::Exhausted(shortage) => Some(shortage),
            Kind::Unavailable => Some(Shortage::Service),
            _ => None,
        }
    }
}

/// The error of a command. `message` is lower-case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Kind, which decides the exit code.
    pub kind: Kind,
    /// Action that failed, as the words after "failed to", or a whole clause.
    pub message: String,
    /// Whether the message is a whole clause, without "failed to".
    pub is_clause: bool,
    /// Cause in one clause; `None` if the message says it all.
    pub cause: Option<String>,
    /// Advice on what to do, as one imperative clause.
    pub hint: Option<String>,
    /// File with more details, such as the log of a build.
    pub log: Option<PathBuf>,
}

impl Error {
    /// Creates an error without a cause, a hint or a log.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
            is_clause: false,
            cause: None,
            hint: None,
            log: None,
        }
    }

    /// Creates an error whose message is a whole clause, such as "Python 3.14 is not installed".
    pub fn clause(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            is_clause: true,
            ..Error::new(kind, message)
        }
    }

    /// Creates an error for a run without a test, exit code 1.
    pub fn nothing(message: impl Into<String>) -> Self {
        Error::new(Kind::Nothing, message)
    }

    /// Creates an error for bad input or usage, exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::new(Kind::Usage, message)
    }

    /// Creates an error for a failure of an engine, a network or a disk, exit code 3.
    pub fn infrastructure(message: impl Into<String>) -> Self {
        Error::new(Kind::Infrastructure, message)
    }

    /// Creates an error for a service that may be available later, exit code 3.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Error::new(Kind::Unavailable, message)
    }

    /// Creates an error for a resource that ran out, exit code 3, with a hint on that resource.
    pub fn exhausted(shortage: Shortage, message: impl Into<String>) -> Self {
        Error::new(Kind::Exhausted(shortage), message).hint(shortage.hint())
    }

    /// Creates the error for Ctrl-C, exit code 130. The same command can continue the work.
    pub fn interrupted() -> Self {
        Error::clause(Kind::Interrupted, "interrupted")
            .hint("run the same command again to continue")
    }

    /// Creates the error for work that was cancelled elsewhere, exit code 130. `message` is a whole clause.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Error::clause(Kind::Interrupted, message)
    }

    /// Creates the error for a file operation that the system refused.
    pub fn io(message: impl Into<String>, error: &std::io::Error) -> Self {
        if let Some(shortage) = Shortage::reported_by(error) {
            return Error::exhausted(shortage, message).cause(error);
        }
        let it = Error::infrastructure(message).cause(error);
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                it.hint("check the permissions, or choose another folder")
            }
            _ => it,
        }
    }

    /// Turns bad input into a failure of the machine. A worker uses it for its settings, which the client that started
    /// the run cannot change.
    #[must_use]
    pub fn into_infrastructure(self) -> Self {
        match self.kind {
            Kind::Usage | Kind::Unauthorized => Error {
                kind: Kind::Infrastructure,
                ..self
            },
            _ => self,
        }
    }

    /// Replaces the cause.
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Replaces the hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Replaces the hint if there is another one.
    pub fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Says what was being done; the previous message becomes part of the cause.
    pub fn while_doing(self, message: impl Into<String>) -> Self {
        let cause = match self.cause {
            Some(cause) => format!("{}: {cause}", self.message),
            None => self.message,
        };
        Error {
            message: message.into(),
            is_clause: false,
            cause: Some(cause),
            ..self
        }
    }

    /// Replaces the message with what was being done.
    pub fn doing(self, message: impl Into<String>) -> Self {
        Error {
            message: message.into(),
            is_clause: false,
            ..self
        }
    }

    /// Returns the exit code of the command line.
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// Returns the message with its cause, without the hint.
    pub fn with_cause(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }

    /// Formats the error for stderr: two or three lines, without a trailing newline.
    pub fn render(&self) -> String {
        let label = match self.kind {
            // The user caused the end.
            Kind::Interrupted => "",
            _ => "error: ",
        };
        // A newline in a name must not start a line of its own.
        let mut text = format!("{label}{self}").replace('\n', "\n       ");
        for (label, part) in [("cause", &self.cause), ("hint", &self.hint)] {
            if let Some(part) = part {
                // Messages from engines and servers may have several lines.
                let part = part.trim_end().replace('\n', "\n         ");
                text.push_str(&format!("\n  {label}: {part}"));
            }
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_clause {
            true => f.write_str(&self.message),
            false => write!(f, "failed to {}", self.message),
        }
    }
}

impl std::error::Error for Error {}

impl From<SandboxError> for Error {
    fn from(e: SandboxError) -> Self {
        let (kind, message) = match e.kind {
            ErrorKind::Input => (Kind::Usage, "prepare the sandbox as asked"),
            ErrorKind::Unavailable => (Kind::Infrastructure, "reach the sandbox's engine"),
            ErrorKind::NotFound => (
                Kind::Infrastructure,
                "find the code or image of the sandbox",
            ),
            ErrorKind::Build => (Kind::Infrastructure, "build the environment"),
            ErrorKind::Dead => (Kind::Infrastructure, "continue in the sandbox"),
            ErrorKind::NotStarted => (Kind::Infrastructure, "start the sandbox"),
            ErrorKind::System => (Kind::Infrastructure, "run the sandbox"),
            ErrorKind::Exhausted(shortage) => (Kind::Exhausted(shortage), "run the sandbox"),
        };
        Error {
            cause: Some(e.message),
            hint: e.hint,
            log: e.log,
            ..Error::new(kind, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_shows_message_cause_and_hint() {
        let error = Error::usage("read the issue")
            .cause("no such file: isue.md")
            .hint("did you mean `issue.md`?");
        insta::assert_snapshot!(error.render(), @r"
        error: failed to read the issue
          cause: no such file: isue.md
          hint: did you mean `issue.md`?
        ");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn clauses_stand_alone() {
        let error = Error::clause(Kind::Usage, "Python 2.7 is not supported");
        assert_eq!(error.render(), "error: Python 2.7 is not supported");
        insta::assert_snapshot!(Error::interrupted().render(), @r"
        interrupted
          hint: run the same command again to continue
        ");
    }

    #[test]
    fn while_doing_extends_cause() {
        let error = Error::infrastructure("open the file")
            .cause("it is gone")
            .while_doing("write the record");
        insta::assert_snapshot!(error.render(), @r"
        error: failed to write the record
          cause: open the file: it is gone
        ");
    }

    #[test]
    fn sandbox_errors_map_to_exit_codes() {
        let kinds = [
            (ErrorKind::Input, 2),
            (ErrorKind::Unavailable, 3),
            (ErrorKind::NotFound, 3),
            (ErrorKind::Build, 3),
            (ErrorKind::Dead, 3),
            (ErrorKind::NotStarted, 3),
            (ErrorKind::System, 3),
            (ErrorKind::Exhausted(Shortage::Disk), 3),
        ];
        for (kind, code) in kinds {
            let error = Error::from(SandboxError::new(kind, "x").hint("y"));
            assert_eq!(
                (error.exit_code(), error.hint.as_deref()),
                (code, Some("y"))
            );
        }
    }

    #[test]
    fn full_disk_has_hint() {
        let error = Error::io(
            "write the record",
            &std::io::Error::from(std::io::ErrorKind::StorageFull),
        );
        assert_eq!(error.exit_code(), 3);
        assert!(error.hint.is_some_and(|h| h.contains("space")));
    }
}
