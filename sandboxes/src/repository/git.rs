//! The `git` program, hardened.
//!
//! Every git of the host is started by one constructor, with all limits (`limits`): of memory, of time and of what it prints.
//! Two ways of running it: [`Git::command`] reads objects and never sees a configuration but ours (a repository's own, the
//! user's and the system's can all name programs, and attributes in a stranger's files choose among them);
//! [`Git::network`] talks to a remote, for which the user's configuration (proxies, certificates, ssh) is needed.
//! Neither runs in a folder that is not ours.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::limits;
use super::process::{self, Bounds, GitOutput};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// Stronger than any file of settings.
const SETTINGS: [&str; 27] = [
    // Programs.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.pager=cat",
    "core.editor=false",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "credential.interactive=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.ext.allow=never",
    // What else a repository brings along to be read, and is not needed.
    "core.attributesFile=/dev/null",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.useReplaceRefs=false",
    "core.untrackedCache=false",
    "safe.bareRepository=explicit",
    "transfer.bundleURI=false",
    // Large files pass in pieces.
    "core.bigFileThreshold=1m",
    // Parts of packs that are mapped at once.
    "core.packedGitLimit=256m",
    // A login is for the server that it was given for.
    "http.followRedirects=initial",
    // A server that says nothing for so many seconds is gone.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=300",
    "core.quotePath=false",
];

/// Variables for git that a command that reads objects keeps: where git itself is.
const KEPT: [&str; 1] = ["GIT_EXEC_PATH"];

/// Those that are kept for the network besides: the user's own ways to reach servers.
const KEPT_FOR_NETWORK: [&str; 9] = [
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

/// A git command for one repository (or for none yet).
#[derive(Debug, Clone)]
pub(super) struct Git {
    pub directory: Option<PathBuf>,
    /// How the remote is reached, where there is one.
    pub remote: Option<Remote>,
}

/// How a remote is reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Remote {
    /// Protocols that git may use, with colons between them.
    pub protocols: String,
    pub credential: Option<Credential>,
    /// In whose stead a git folder of ours is asked: the address.
    pub stands_for: Option<(PathBuf, String)>,
}

/// A login, for one server alone.
#[derive(Clone)]
pub(super) struct Credential {
    /// `https://host`, in characters that mean themselves.
    pub server: String,
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({})", self.server)
    }
}

/// Answers git's question for a login. The login itself is in variables, where only this user can read it.
const HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$TESTWRIGHT_GIT_USER\" \"$TESTWRIGHT_GIT_PASSWORD\"; }; f";

impl Git {
    /// The repository whose git folder this is: one of ours.
    pub fn at(directory: &Path) -> Result<Git> {
        Ok(Git {
            directory: Some(std::path::absolute(directory)?),
            remote: None,
        })
    }

    /// The folders of objects that it borrows from, as git notes them; empty where all are its own.
    pub fn borrowed_objects(&self) -> Vec<u8> {
        let list = self
            .directory
            .as_ref()
            .map(|d| d.join("objects/info/alternates"));
        list.and_then(|list| std::fs::read(list).ok())
            .unwrap_or_default()
    }

    /// No repository.
    pub fn nowhere() -> Git {
        Git {
            directory: None,
            remote: None,
        }
    }

    /// Every git is made here.
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
            command.args(["-c", setting]);
        }
        match &self.directory {
            Some(directory) => command
                .current_dir(directory)
                .arg("--git-dir")
                .arg(directory),
            // A folder that is not a repository, so that none is looked for.
            None => command.current_dir("/").env("GIT_DIR", "/dev/null"),
        };
        command
    }

    /// Reads objects; no configuration but that of the git folder, which is ours.
    pub fn command(&self) -> Command {
        let mut command = self.base(|name| KEPT.contains(&name));
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ALLOW_PROTOCOL", "none");
        command
    }

    /// Talks to the remote, as the user has set it up.
    pub fn network(&self) -> Command {
        let kept = |name: &str| KEPT_FOR_NETWORK.iter().any(|start| name.starts_with(start));
        let mut command = self.base(|name| KEPT.contains(&name) || kept(name));
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        let remote = self.remote.clone().unwrap_or_default();
        command.env("GIT_ALLOW_PROTOCOL", &remote.protocols);
        if let Some((directory, address)) = &remote.stands_for {
            // Through variables: a folder's name may hold what separates key and value. The user's own stay.
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
                    &format!("credential.{}.helper={HELPER}", login.server),
                ]);
        }
        command
    }

    /// Runs it, whatever its exit code.
    pub fn try_run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Result<GitOutput> {
        let mut command = self.command();
        let arguments: Vec<_> = arguments.into_iter().collect();
        command.args(&arguments);
        let output = process::run(command, input, &Bounds::default());
        output.map_err(|error| {
            let what = arguments.first().map(|a| a.as_ref().to_string_lossy());
            about(&format!("git {}", what.unwrap_or_default()), error)
        })
    }

    /// Fetches from the remote, whatever the exit code, until the repository has `max` bytes.
    pub fn fetch<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
        max: u64,
    ) -> Result<GitOutput> {
        let mut command = self.network();
        command
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .arg("--recurse-submodules=no")
            .args(arguments);
        let bounds = Bounds {
            time: limits::FETCH_TIME,
            folder: self.directory.clone().map(|d| (d, max)),
            ..Bounds::default()
        };
        process::run(command, input, &bounds).map_err(|error| about("git fetch", error))
    }

    /// Runs it; an exit code other than 0 is an error.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Vec<u8>> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let what = arguments
            .first()
            .map(|a| a.as_ref().to_string_lossy().into_owned());
        let output = self.try_run(arguments, b"")?;
        if output.ok {
            return Ok(output.stdout);
        }
        Err(failed(&what.unwrap_or_default(), &output.stderr))
    }

    /// One line of output, trimmed; `None` if git fails or says nothing.
    pub fn line<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Option<String>> {
        let output = self.try_run(arguments, b"")?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.ok && !text.is_empty()).then_some(text))
    }
}

/// Says what went beyond its bounds.
fn about(what: &str, error: SandboxError) -> SandboxError {
    match error.kind {
        ErrorKind::Input => SandboxError {
            message: format!("{what} was ended: {}", error.message),
            ..error
        },
        _ => error,
    }
}

/// The error for a git that failed.
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
    SandboxError::new(ErrorKind::System, format!("git {what}: {message}"))
}
