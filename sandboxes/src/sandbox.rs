//! What every sandbox promises. One conformance battery (`tests/it/conformance`) holds every backend to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::error::SandboxError;

pub type Result<T> = std::result::Result<T, SandboxError>;

/// Makes sandboxes of one kind.
#[async_trait]
pub trait Backend: Send + Sync {
    /// In a word, e.g. `docker`.
    fn name(&self) -> &'static str;

    /// Has each sandbox a loopback of its own, apart from the host's and from those of other sandboxes?
    fn own_loopback(&self) -> bool {
        true
    }

    /// One line for people before anything runs, if the isolation is less than they may expect.
    fn caution(&self) -> Option<&'static str> {
        None
    }

    /// Everything about this backend that a saved state depends on and that is not in a [`Spec`]
    /// (engine architecture, isolation layout): part of the key under which environments are cached.
    fn layout(&self) -> String;

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>>;

    /// Is there a saved state of this name (see [`Sandbox::save`])?
    async fn has_saved(&self, name: &str) -> Result<bool>;

    /// Bytes that a saved state takes on disk beyond what it shares with the state (or the image) that it was made
    /// from. Error of kind `NotFound` if there is none of that name.
    async fn saved_bytes(&self, name: &str) -> Result<u64>;

    /// Removes saved states; unknown names are not an error.
    async fn remove_saved(&self, name: &str) -> Result<()>;

    /// Writes a saved state to a file, for [`Backend::import_saved`] on another machine.
    async fn export_saved(&self, name: &str, to: &Path) -> Result<()>;

    /// Makes a saved state of a file that another machine exported under the same name; one that is there is replaced.
    async fn import_saved(&self, name: &str, from: &Path) -> Result<()>;

    /// All that two machines must have in common, beyond [`Backend::layout`], for a saved state of one to work on the
    /// other: as a text to compare. `python` is the version that the state was built with.
    async fn machine(&self, python: Option<&str>) -> Result<String>;

    /// Is there an interpreter for [`SandboxSource::Python`]? Error with a hint if not.
    async fn check_python(&self, version: &str) -> Result<()>;

    /// What an image holds, by a digest: under a name there may be another one tomorrow. Pulled first where that is allowed
    /// and needed.
    async fn image_digest(&self, name: &str) -> Result<String>;

    /// Removes sandboxes, forks and half-saved states whose owner process is gone. Returns one line for each.
    async fn clean(&self) -> Result<Vec<String>>;

    /// Removes what this process started and has not stopped: for an end that comes in between (Ctrl-C while an
    /// environment is built). Backends whose sandboxes end with this process need do nothing.
    async fn abandon(&self) -> Result<()> {
        Ok(())
    }
}

/// How a sandbox is to be.
#[derive(Debug, Clone)]
pub struct Spec {
    pub start: SandboxSource,
    /// Network while it runs. Off for tools, and for building too: what a build may reach comes by a relay (see
    /// [`crate::egress`]).
    pub network: bool,
    /// The relay's port on the host's loopback, the one address that may be connected to, where [`Backend::own_loopback`] says no; others
    /// ignore it.
    pub host_port: Option<u16>,
    /// Run processes as root where the image has it (for building environments).
    pub root: bool,
    pub limits: Limits,
    /// Added to the environment of every process.
    pub env: BTreeMap<String, String>,
    /// Host folders that are visible inside (package caches while building); a remote engine skips them.
    pub mounts: Vec<Mount>,
    /// Marks what belongs together, e.g. the id of a run; ends up in labels and names.
    pub purpose: String,
}

/// From what a sandbox starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSource {
    /// A bare system with CPython `X.Y`.
    Python(String),
    /// A ready image by name (Docker only), e.g. a published SWE-bench image.
    Image(String),
    /// A state saved by [`Sandbox::save`].
    Saved(String),
}

#[derive(Debug, Clone)]
pub struct Mount {
    pub host: PathBuf,
    pub inside: PathBuf,
    pub read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of memory for all processes together.
    pub memory: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// CPUs, e.g. 2.0.
    pub cpus: f64,
    /// Bytes that one file may reach.
    pub file_size: u64,
    /// Bytes on disk for all that is written, wherever it can be written; four times as many while an environment is
    /// built. Beyond it the sandbox is ended.
    pub disk: u64,
    /// Files and folders that may be made, likewise.
    pub files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 4 << 30,
            processes: 512,
            cpus: 2.0,
            file_size: 2 << 30,
            disk: 8 << 30,
            files: 1_000_000,
        }
    }
}

/// Where things are inside a sandbox. `workspace` and `temporary` never share a top-level folder: tools such as
/// docutils print other paths when they do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paths {
    /// The checkout of the old code, writable: `/testbed`.
    pub workspace: PathBuf,
    /// The virtual environment: `/opt/testwright/env`; not writable while tools run.
    pub environment: PathBuf,
    /// Our own files (toolbox, base archive): `/opt/testwright`; not writable while tools run.
    pub store: PathBuf,
    /// Writable: `/tmp`.
    pub temporary: PathBuf,
    /// Writable, for the toolbox's own files; the programs that it starts get no right to write there.
    #[serde(default)]
    pub private: PathBuf,
    /// The folder that the toolbox is put into. Programs that it starts get no right to write there.
    #[serde(default)]
    pub toolbox: PathBuf,
}

/// What is in force; ends up in a run's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// `docker` or `local`.
    pub backend: String,
    /// For people, e.g. `container, user 1000, no network, capabilities dropped` or
    /// `namespaces (user, mount, pid, network, ipc, uts)` or `landlock + seccomp` or `none`.
    pub isolation: String,
    /// Identifies it to the engine, e.g. a container id.
    pub id: String,
    pub paths: Paths,
}

/// A process to start inside.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Program and arguments; the program is looked up in the sandbox's PATH.
    pub argv: Vec<String>,
    /// Default: the workspace.
    pub directory: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
}

impl Command {
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Command {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Command::default()
        }
    }

    /// A script for `sh -c`.
    pub fn shell(script: impl Into<String>) -> Self {
        Command::new(["sh".to_owned(), "-c".to_owned(), script.into()])
    }
}

/// A running process. Dropping it does not end it; [`Sandbox::stop`] does.
pub struct Process {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Resolves to the exit code (128 + signal where a signal ended it).
    pub exit: BoxFuture<'static, Result<i32>>,
}

/// What a finished process left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

#[async_trait]
pub trait Sandbox: Send + Sync {
    fn info(&self) -> &SandboxInfo;

    /// Writes a file (parents are made), readable by the user that tools run as; `mode` as in chmod.
    async fn upload(&self, path: &Path, content: &[u8], mode: u32) -> Result<()>;

    /// The same for the content of a file of the host, which may be large.
    async fn upload_file(&self, path: &Path, from: &Path, mode: u32) -> Result<()> {
        self.upload(path, &tokio::fs::read(from).await?, mode).await
    }

    /// Unpacks a tar archive into a folder (made if needed), owned by the user that tools run as.
    async fn unpack(&self, folder: &Path, archive: &Path) -> Result<()>;

    /// Reads a file.
    async fn download(&self, path: &Path) -> Result<Vec<u8>>;

    async fn spawn(&self, command: &Command) -> Result<Process>;

    /// A running copy of the present state of the files, with the same limits; what happens in it never
    /// reaches the original. Processes are not copied.
    async fn fork(&self) -> Result<Box<dyn Sandbox>>;

    /// Keeps the present state of the files under a name, for [`SandboxSource::Saved`]. A state of that name is replaced;
    /// a save that is cut short leaves no state.
    async fn save(&self, name: &str) -> Result<()>;

    /// Is it alive? Quick (well under a second), and an error of kind `Dead` if not.
    async fn health(&self) -> Result<()>;

    /// Ends all processes and removes the sandbox. Doing so twice is not an error.
    async fn stop(&self) -> Result<()>;
}

/// Bytes that are taken of what a process prints, and of a file that is read out of a sandbox.
pub(crate) const MAX_OUTPUT_LEN: u64 = 64 << 20;

/// Bytes that are kept of error messages.
const MAX_MESSAGES: u64 = 64 << 10;

/// Runs a command to its end. On the deadline the process is left to [`Sandbox::stop`] and the error says so.
pub async fn output(
    sandbox: &dyn Sandbox,
    command: &Command,
    deadline: Duration,
) -> Result<Output> {
    let Process {
        stdin,
        stdout,
        stderr,
        exit,
    } = sandbox.spawn(command).await?;
    drop(stdin);
    let work = async {
        let doing = || format!("`{}`", command.argv.join(" "));
        let (out, err) = tokio::try_join!(read_all(&doing, stdout), read_all(&doing, stderr))?;
        Ok(Output {
            code: exit.await?,
            stdout: out,
            stderr: err,
        })
    };
    match tokio::time::timeout(deadline, work).await {
        Ok(result) => result,
        Err(_) => Err(SandboxError::new(
            crate::error::ErrorKind::System,
            format!(
                "`{}` did not end within {} s",
                command.argv.join(" "),
                deadline.as_secs()
            ),
        )),
    }
}

/// Reads what a process prints to its end. Code in the sandbox may print without end, so more than [`MAX_OUTPUT_LEN`] bytes
/// are an error. `name` is how the error calls the process.
pub(crate) async fn read_all(
    name: &(impl Fn() -> String + Sync),
    stream: impl AsyncRead + Unpin,
) -> Result<Vec<u8>> {
    let mut read = Vec::new();
    let mut stream = stream.take(MAX_OUTPUT_LEN);
    stream.read_to_end(&mut read).await?;
    if stream.limit() > 0 {
        return Ok(read);
    }
    Err(SandboxError::new(
        crate::error::ErrorKind::System,
        format!("{} printed {} MiB and more", name(), MAX_OUTPUT_LEN >> 20),
    ))
}

/// Reads messages to their end and keeps their beginning.
pub(crate) async fn read_messages(mut stream: impl AsyncRead + Unpin) -> std::io::Result<String> {
    let mut kept = Vec::new();
    (&mut stream)
        .take(MAX_MESSAGES)
        .read_to_end(&mut kept)
        .await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&kept).trim().to_owned())
}
