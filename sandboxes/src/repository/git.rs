//! The `git` program, hardened.
//!
//! A single constructor starts every git of the host, with all limits (`limits`): memory, time and output. There are
//! two ways of running it:
//!
//! - [`Git::command`] reads objects and sees only testwright's configuration. The configurations of the repository, the
//!   user and the system can name programs, and attributes in untrusted files choose among them.
//! - [`Git::network`] talks to a remote, which requires the user's configuration (proxies, certificates, ssh).
//!
//! Neither runs in a folder that testwright did not create.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::limits;
use super::process::{self, GitOutput, ProcessLimits};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// Setting that keeps git from asking the user's credential helpers.
const NO_HELPERS: &str = "credential.helper=";

/// Settings that override every configuration file.
const SETTINGS: [&str; 27] = [
    // Settings that could start programs.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.pager=cat",
    "core.editor=false",
    "core.alternateRefsCommand=",
    NO_HELPERS,
    "credential.interactive=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.ext.allow=never",
    // Optional data that a repository may bring along.
    "core.attributesFile=/dev/null",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.useReplaceRefs=false",
    "core.untrackedCache=false",
    "safe.bareRepository=explicit",
    "transfer.bundleURI=false",
    // Large files are streamed.
    "core.bigFileThreshold=1m",
    // Limit for parts of packs that are mapped at the same time.
    "core.packedGitLimit=256m",
    // Credentials must not follow a redirect to another server.
    "http.followRedirects=initial",
    // A server that sends nothing for this many seconds counts as gone.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=300",
    "core.quotePath=false",
];

/// Variables that all git commands keep: the location of git's own programs.
const KEPT_VARIABLES: [&str; 1] = ["GIT_EXEC_PATH"];

/// Prefixes of variables that network commands keep in addition: the user's ways to reach servers.
const KEPT_NETWORK_PREFIXES: [&str; 9] = [
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_CONFIG_",
    "GIT_CURL_",
    "GIT_TRACE",
    "GIT_REDIRECT_",
    "GIT_PROTOCOL",
];

/// A git command for one repository, or for none.
#[derive(Debug, Clone, Default)]
pub(super) struct Git {
    pub directory: Option<PathBuf>,
    /// Access to the remote; empty for a folder without one.
    pub remote: Remote,
}

/// Access to a remote.
#[derive(Debug, Clone, Default)]
pub(super) struct Remote {
    /// Protocols that git may use, separated by colons.
    pub protocols: String,
    pub credential: Option<Credential>,
    /// Whether git may ask the credential helpers in the user's configuration.
    pub uses_helpers: bool,
    /// A local git folder, and the URL that it replaces.
    pub stands_for: Option<(PathBuf, String)>,
}

/// A login for a single server.
#[derive(Clone)]
pub(super) struct Credential {
    /// `https://host`, in literal characters.
    pub server: String,
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({})", self.server)
    }
}

/// Credential helper that answers git's request for a login. The login itself is in environment variables, which only
/// this user can read.
const CREDENTIAL_HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$TESTWRIGHT_GIT_USER\" \"$TESTWRIGHT_GIT_PASSWORD\"; }; f";

impl Git {
    /// Returns a git for a git folder that testwright created.
    pub(super) fn at(directory: &Path) -> Result<Git> {
        Ok(Git {
            directory: Some(std::path::absolute(directory)?),
            remote: Remote::default(),
        })
    }

    /// Returns the path of git's list of folders that objects are borrowed from.
    pub(super) fn alternates(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join("objects/info/alternates"))
    }

    /// Returns a git without a repository.
    pub(super) fn nowhere() -> Git {
        Git::default()
    }

    /// Builds the command that all git calls share.
    fn base(&self, keeps: impl Fn(&str) -> bool) -> Command {
        let mut command = process::limited("git");
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name == "SSH_ASKPASS" || (name.starts_with("GIT_") && !keeps(&name)) {
                command.env_remove(&*name);
            }
        }
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_ALLOC_LIMIT", limits::ALLOCATION.to_string())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .arg("--no-pager");
        for setting in SETTINGS {
            if !(self.remote.uses_helpers && setting == NO_HELPERS) {
                command.args(["-c", setting]);
            }
        }
        match &self.directory {
            Some(directory) => command
                .current_dir(directory)
                .arg("--git-dir")
                .arg(directory),
            // This is not a repository, and it keeps git from searching for one.
            None => command.current_dir("/").env("GIT_DIR", "/dev/null"),
        };
        command
    }

    /// Returns a command that reads objects, with only the configuration of the git folder, which testwright wrote.
    pub(super) fn command(&self) -> Command {
        let mut command = self.base(|name| KEPT_VARIABLES.contains(&name));
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ALLOW_PROTOCOL", "none");
        command
    }

    /// Returns a command that talks to the remote with the user's configuration.
    pub(super) fn network(&self) -> Command {
        let has_kept_prefix = |name: &str| {
            KEPT_NETWORK_PREFIXES
                .iter()
                .any(|start| name.starts_with(start))
        };
        let mut command = self.base(|name| KEPT_VARIABLES.contains(&name) || has_kept_prefix(name));
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        let remote = &self.remote;
        command.env("GIT_ALLOW_PROTOCOL", &remote.protocols);
        if let Some((directory, address)) = &remote.stands_for {
            // Variables are used because a folder's name may contain the characters that separate key and value. The
            // user's own variables stay.
            let count = std::env::var("GIT_CONFIG_COUNT").ok();
            let count: u32 = count.and_then(|c| c.parse().ok()).unwrap_or(0);
            let key = format!("url.{}.insteadOf", directory.display());
            command
                .env("GIT_CONFIG_COUNT", (count + 1).to_string())
                .env(format!("GIT_CONFIG_KEY_{count}"), key)
                .env(format!("GIT_CONFIG_VALUE_{count}"), address);
        }
        if let Some(login) = &remote.credential {
            command
                .env("TESTWRIGHT_GIT_USER", &login.user)
                .env("TESTWRIGHT_GIT_PASSWORD", &login.password)
                .args([
                    "-c",
                    &format!("credential.{}.helper={CREDENTIAL_HELPER}", login.server),
                ]);
        }
        command
    }

    /// Runs git and returns its output, whatever the exit code.
    pub(super) fn try_run(&self, arguments: &[&str], input: &[u8]) -> Result<GitOutput> {
        let mut command = self.command();
        command.args(arguments);
        let output = process::run(command, input, &ProcessLimits::default());
        output.map_err(|error| with_command_name(arguments[0], error))
    }

    /// Fetches from the remote, and stops if the repository exceeds `max` bytes. Returns the output, whatever the exit
    /// code.
    pub(super) fn fetch(&self, arguments: &[&str], input: &[u8], max: u64) -> Result<GitOutput> {
        let mut command = self.network();
        command
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .arg("--recurse-submodules=no")
            .args(arguments);
        let bounds = ProcessLimits {
            time: limits::FETCH_TIMEOUT,
            folder: self.directory.clone().map(|d| (d, max)),
            ..ProcessLimits::default()
        };
        process::run(command, input, &bounds).map_err(|error| with_command_name("fetch", error))
    }

    /// Pushes one branch to a remote, and nothing that the user's configuration would add. Returns the output, whatever
    /// the exit code.
    pub(super) fn push(&self, arguments: &[&str]) -> Result<GitOutput> {
        let mut command = self.network();
        command
            .args(["push", "--quiet", "--no-follow-tags", "--no-signed"])
            .arg("--recurse-submodules=no")
            .args(arguments);
        let output = process::run(command, b"", &ProcessLimits::default());
        output.map_err(|error| with_command_name("push", error))
    }

    /// Runs git and returns its standard output. Fails if the exit code is not 0.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let printed = self.try_run(arguments, b"")?.printed(arguments[0])?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Returns the trimmed output, or `None` if git fails or prints nothing.
    pub(super) fn line(&self, arguments: &[&str]) -> Result<Option<String>> {
        Ok(self.try_run(arguments, b"")?.line())
    }

    /// Returns the hash of the object that an expression names, if it exists.
    pub(super) fn object(&self, name: &str) -> Result<Option<String>> {
        self.line(&["rev-parse", "--verify", "--quiet", name])
    }
}

impl GitOutput {
    /// Returns the standard output of a git command. Fails if the exit code is not 0.
    pub(super) fn printed(self, command: &str) -> Result<Vec<u8>> {
        match self.ok {
            true => Ok(self.stdout),
            false => Err(failed(command, &self.stderr)),
        }
    }

    /// Returns the trimmed output, or `None` if git failed or printed nothing.
    pub(super) fn line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.stdout).trim().to_owned();
        (self.ok && !text.is_empty()).then_some(text)
    }
}

/// Adds the name of the command to an error about exceeded limits.
fn with_command_name(command: &str, error: SandboxError) -> SandboxError {
    match error.kind {
        ErrorKind::Input => SandboxError {
            message: format!("git {command} was stopped: {}", error.message),
            ..error
        },
        _ => error,
    }
}

/// Returns the error for a git command that failed.
pub(super) fn failed(what: &str, stderr: &str) -> SandboxError {
    let last = stderr
        .lines()
        .rev()
        .find(|l| l.starts_with("fatal: ") || l.starts_with("error: "))
        .or(stderr.lines().last())
        .unwrap_or("no error message");
    let message = last
        .trim_start_matches("fatal: ")
        .trim_start_matches("error: ");
    SandboxError::system(format!("git {what}: {message}"))
}
