//! The `git` program, hardened.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// Settings that a repository's own configuration must not decide for us.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "credential.interactive=false",
    "protocol.ext.allow=never",
    "gc.auto=0",
];

/// Variables of a surrounding git process that would point us elsewhere.
const REMOVED: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
];

/// A git command for one repository (or for none yet).
#[derive(Debug, Clone)]
pub(super) struct Git {
    pub directory: Option<PathBuf>,
    /// Header with the credentials, and the URL prefix to which alone it is sent.
    pub credential: Option<(String, String)>,
}

/// What git said.
pub(super) struct Said {
    pub ok: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Git {
    /// The repository whose git folder this is.
    pub fn at(directory: impl Into<PathBuf>) -> Git {
        Git {
            directory: Some(directory.into()),
            credential: None,
        }
    }

    /// No repository: `init`, `clone`, `apply` outside of one.
    pub fn nowhere() -> Git {
        Git {
            directory: None,
            credential: None,
        }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new("git");
        for name in REMOVED {
            command.env_remove(name);
        }
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        // Through the environment, so that nobody reads it in the list of processes.
        if let Some((prefix, header)) = &self.credential {
            command
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", format!("http.{prefix}.extraHeader"))
                .env("GIT_CONFIG_VALUE_0", header);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if let Some(directory) = &self.directory {
            command.arg("--git-dir").arg(directory);
        }
        command
    }

    /// Runs it, whatever its exit code.
    pub fn try_run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Result<Said> {
        let mut command = self.command();
        command.args(arguments);
        run(command, input)
    }

    /// Runs it; an exit code other than 0 is an error.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Vec<u8>> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let what = arguments
            .first()
            .map(|a| a.as_ref().to_string_lossy().into_owned());
        let said = self.try_run(arguments, b"")?;
        if said.ok {
            return Ok(said.stdout);
        }
        Err(failed(&what.unwrap_or_default(), &said.stderr))
    }

    /// One line of output, trimmed; `None` if git fails or says nothing.
    pub fn line<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Option<String>> {
        let said = self.try_run(arguments, b"")?;
        let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        Ok((said.ok && !text.is_empty()).then_some(text))
    }
}

/// Runs a prepared command with `input` on its stdin.
pub(super) fn run(mut command: Command, input: &[u8]) -> Result<Said> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().map_err(not_started)?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        if let Some(mut stdin) = stdin {
            // A git that does not read to the end says why on stderr.
            scope.spawn(move || stdin.write_all(input));
        }
        child.wait_with_output()
    })?;
    Ok(Said {
        ok: output.status.success(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

pub(super) fn not_started(error: std::io::Error) -> SandboxError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return SandboxError::new(
            ErrorKind::Unavailable,
            "git is not installed, or not on the PATH",
        )
        .hint("install git (Debian: apt-get install git)");
    }
    error.into()
}

/// The error for a git that failed, with a hint for the usual causes.
pub(super) fn failed(what: &str, stderr: &str) -> SandboxError {
    let last = stderr
        .lines()
        .rev()
        .find(|l| l.starts_with("fatal: ") || l.starts_with("error: "))
        .or(stderr.lines().last())
        .unwrap_or("no message");
    let message = last
        .trim_start_matches("fatal: ")
        .trim_start_matches("error: ");
    let error = SandboxError::new(ErrorKind::System, format!("git {what}: {message}"));
    if stderr.contains("dubious ownership") {
        let mut error = error.hint(
            "the repository belongs to another user: git config --global --add safe.directory PATH",
        );
        error.kind = ErrorKind::Input;
        return error;
    }
    error
}

/// The git folder that holds `path`, and the path of `path` in the work tree (`""` at its root, and in bare ones).
pub(super) fn discover(path: &Path) -> Result<Option<(PathBuf, String)>> {
    let mut command = Git::nowhere().command();
    command
        .arg("-C")
        .arg(path)
        .args(["rev-parse", "--absolute-git-dir", "--show-prefix"]);
    let said = run(command, b"")?;
    if !said.ok {
        if said.stderr.contains("not a git repository") {
            return Ok(None);
        }
        return Err(failed("rev-parse", &said.stderr));
    }
    let text = String::from_utf8_lossy(&said.stdout);
    let mut lines = text.lines();
    let directory = lines.next().unwrap_or_default().to_owned();
    let prefix = lines
        .next()
        .unwrap_or_default()
        .trim_end_matches('/')
        .to_owned();
    Ok(Some((PathBuf::from(directory), prefix)))
}
