//! The interface of all sandboxes. One set of conformance tests (`tests/it/conformance`) holds for every backend.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::SandboxError;

/// Result of an operation that can fail with a [`SandboxError`].
pub type Result<T> = std::result::Result<T, SandboxError>;

/// A factory for sandboxes of one kind.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Returns the name in one word, e.g. `docker`.
    fn name(&self) -> &'static str;

    /// Returns whether each sandbox has its own loopback, separate from the host's and from those of other sandboxes.
    fn has_own_loopback(&self) -> bool {
        true
    }

    /// Returns a one-line warning for people, shown before anything runs, if the isolation is weaker than they may
    /// expect.
    fn isolation_warning(&self) -> Option<&'static str> {
        None
    }

    /// Returns everything about this backend that a saved state depends on and that is not in a [`Spec`] (engine
    /// architecture, isolation layout). It is part of the key under which environments are cached.
    fn layout(&self) -> String;

    /// Starts a sandbox.
    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>>;

    /// Returns whether a saved state of this name exists (see [`Sandbox::save`]).
    async fn has_saved(&self, name: &str) -> Result<bool>;

    /// Returns the bytes that a saved state takes on disk beyond what it shares with its base state or image. Fails
    /// with kind `NotFound` if the state does not exist.
    async fn saved_bytes(&self, name: &str) -> Result<u64>;

    /// Removes a saved state; an unknown name is not an error.
    async fn remove_saved(&self, name: &str) -> Result<()>;

    /// Writes a saved state to a file, for [`Backend::import_saved`] on another machine.
    async fn export_saved(&self, name: &str, to: &Path) -> Result<()>;

    /// Creates a saved state from a file that another machine exported under the same name. Replaces an existing one.
    async fn import_saved(&self, name: &str, from: &Path) -> Result<()>;

    /// Returns all that two machines must have in common, beyond [`Backend::layout`], for a saved state of one to work
    /// on the other, as a text to compare. `python` is the version that the state was built with.
    async fn machine(&self, python: Option<&str>) -> Result<String>;

    /// Checks that an interpreter for [`SandboxSource::Python`] exists. The error has a hint.
    async fn check_python(&self, version: &str) -> Result<()>;

    /// Returns the digest of an image, since its name may refer to another image tomorrow. Pulls it first if needed and
    /// allowed.
    async fn image_digest(&self, name: &str) -> Result<String>;

    /// Returns the name of the image that [`Backend::build_image`] saves as a state, for [`SandboxSource::Image`].
    ///
    /// # Errors
    ///
    /// Kind `Input` if the backend has no images.
    fn image_name(&self, state: &str) -> Result<String> {
        let _ = state;
        Err(no_images())
    }

    /// Builds an image from a Dockerfile and saves it as a state. Fails with kind `Build` if an instruction fails, and
    /// with kind `Input` if the Dockerfile names an image that it may not use.
    async fn build_image(&self, build: &ImageBuild<'_>) -> Result<()> {
        let _ = build;
        Err(no_images())
    }

    /// Removes sandboxes, forks and incomplete states whose owner process is gone. Returns one line for each.
    async fn clean(&self) -> Result<Vec<String>>;

    /// Removes what this process started and has not stopped, if it is interrupted (Ctrl-C while an environment is
    /// built). Backends whose sandboxes end with this process need do nothing.
    async fn abandon(&self) -> Result<()> {
        Ok(())
    }
}

fn no_images() -> SandboxError {
    let message = "build an image from a Dockerfile: this kind of sandbox has no images";
    SandboxError::input(message).hint("use --sandbox docker")
}

/// A build of an image from a Dockerfile.
pub struct ImageBuild<'a> {
    /// Name of the saved state.
    pub state: &'a str,
    /// Tar archive with the Dockerfile and the files that it may copy.
    pub context: &'a Path,
    /// Path of the Dockerfile in the archive.
    pub dockerfile: &'a str,
    /// All images that the Dockerfile names.
    pub images: &'a [String],
    /// The image below the last stage; `None` if that is empty.
    pub base: Option<&'a str>,
    /// Last stage to build; `None` for the last one in the file.
    pub target: Option<&'a str>,
    /// Build arguments.
    pub args: &'a BTreeMap<String, String>,
    /// A running sandbox of the same backend, whose network the steps share.
    pub network: &'a SandboxInfo,
    /// Limits on each step.
    pub limits: &'a Limits,
    /// Run all steps again, even if the engine has their results.
    pub rebuild: bool,
    /// Receives the output, in pieces of any length.
    pub log: &'a (dyn Fn(&str) + Send + Sync),
}

/// Specification of a sandbox. Isolated sandboxes have no network access; builds reach package indexes through a relay
/// (see [`crate::egress`]).
#[derive(Debug, Clone)]
pub struct Spec {
    /// State, image or bare system that the sandbox starts from.
    pub start: SandboxSource,
    /// Port of the relay on the host's loopback, the only address that the sandbox may connect to. Used only if
    /// [`Backend::has_own_loopback`] returns false.
    pub host_port: Option<u16>,
    /// Run processes as root if the image allows it (for building environments).
    pub root: bool,
    /// Limits on memory, processes, CPUs and disk.
    pub limits: Limits,
    /// Environment variables added to every process.
    pub env: BTreeMap<String, String>,
    /// Host folders that are visible inside (package caches while building). Remote engines skip them.
    pub mounts: Vec<Mount>,
    /// Purpose of the sandbox, e.g. the id of a run, for labels and names.
    pub purpose: String,
}

impl Spec {
    /// Returns the spec of a sandbox with the default limits, not as root.
    pub fn new(start: SandboxSource, purpose: impl Into<String>) -> Spec {
        Spec {
            start,
            host_port: None,
            root: false,
            limits: Limits::default(),
            env: BTreeMap::new(),
            mounts: Vec::new(),
            purpose: purpose.into(),
        }
    }
}

/// Starting point of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSource {
    /// A bare system with CPython `X.Y`.
    Python(String),
    /// An existing image by name (Docker only), e.g. a published SWE-bench image.
    Image(String),
    /// A state saved by [`Sandbox::save`].
    Saved(String),
}

/// A host folder that is visible inside a sandbox, where processes cannot write to it.
#[derive(Debug, Clone)]
pub struct Mount {
    /// Path on the host.
    pub host: PathBuf,
    /// Path inside the sandbox.
    pub inside: PathBuf,
}

/// Resource limits of one sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum bytes of memory for all processes together.
    pub memory: u64,
    /// Maximum concurrent processes and threads.
    pub processes: u64,
    /// Number of CPUs, e.g. 2.0.
    pub cpus: f64,
    /// Maximum bytes of one file.
    pub file_size: u64,
    /// Maximum bytes on disk for all written files, in any folder; four times as many while an environment is built. A
    /// sandbox that exceeds the limit is ended.
    pub disk: u64,
    /// Maximum number of new files and folders, with the same rules as `disk`.
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

/// Paths inside a sandbox. `workspace` and `temporary` never share a top-level folder: tools such as docutils print
/// different paths if they do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paths {
    /// Checkout of the old code, writable: `/testbed`.
    pub workspace: PathBuf,
    /// Virtual environment: `/opt/testwright/env`. Not writable while tools run.
    pub environment: PathBuf,
    /// Files of testwright (toolbox, base archive): `/opt/testwright`. Not writable while tools run.
    pub store: PathBuf,
    /// Temporary folder, writable: `/tmp`.
    pub temporary: PathBuf,
    /// Folder for the toolbox's own files, writable. Programs that the toolbox starts cannot write there.
    #[serde(default)]
    pub private: PathBuf,
    /// Folder that contains the toolbox. Programs that the toolbox starts cannot write there.
    #[serde(default)]
    pub toolbox: PathBuf,
}

/// Facts about a running sandbox, for the record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// Name of the backend: `docker` or `local`.
    pub backend: String,
    /// Description of the isolation for people, e.g. `container, user 1000, no network, capabilities dropped`,
    /// `namespaces (user, mount, pid, network, ipc, uts)`, `landlock + seccomp` or `none`.
    pub isolation: String,
    /// Id of the sandbox in the engine, e.g. a container id.
    pub id: String,
    /// Locations of testwright's folders inside the sandbox.
    pub paths: Paths,
}

/// A command to run in a sandbox.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Program and arguments. The program is looked up in the sandbox's PATH.
    pub argv: Vec<String>,
    /// Working directory. Default: the workspace.
    pub directory: Option<PathBuf>,
    /// Environment variables in addition to those of [`Spec::env`].
    pub env: BTreeMap<String, String>,
}

impl Command {
    /// Creates a command that runs in the workspace, without additional environment variables.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Command {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Command::default()
        }
    }

    /// Creates a command that runs a script with `sh -c`.
    pub fn shell(script: impl Into<String>) -> Self {
        Command::new(["sh".to_owned(), "-c".to_owned(), script.into()])
    }
}

/// Quotes a word for a shell, if it needs quotes.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A running process. Dropping it does not end the process; [`Sandbox::stop`] does.
pub struct Process {
    /// Standard input of the process. Dropping it closes the stream.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Standard output of the process, unread.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Standard error of the process, unread.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Resolves to the exit code (128 + signal if a signal ended the process).
    pub exit: BoxFuture<'static, Result<i32>>,
}

/// Output of a finished process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; 128 + signal if a signal ended the process.
    pub code: i32,
    /// Complete standard output, at most 64 MiB.
    pub stdout: Vec<u8>,
    /// Complete standard error, at most 64 MiB.
    pub stderr: Vec<u8>,
}

/// A running sandbox, with its files and processes.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Returns facts for the record of a run: id, isolation and paths.
    fn info(&self) -> &SandboxInfo;

    /// Writes a file and creates its parents. The user that tools run as can read it. `mode` is as in chmod.
    async fn upload(&self, path: &Path, content: &[u8], mode: u32) -> Result<()>;

    /// Writes the content of a file on the host, which may be large.
    async fn upload_file(&self, path: &Path, from: &Path, mode: u32) -> Result<()> {
        self.upload(path, &tokio::fs::read(from).await?, mode).await
    }

    /// Unpacks a tar archive into a folder, creating it if needed. The files belong to the user that tools run as.
    async fn unpack(&self, folder: &Path, archive: &Path) -> Result<()>;

    /// Reads a file.
    async fn download(&self, path: &Path) -> Result<Vec<u8>>;

    /// Starts a process and returns its streams, without waiting for its end.
    async fn spawn(&self, command: &Command) -> Result<Process>;

    /// Starts a copy of the sandbox with the present state of its files and the same limits. Changes in the copy never
    /// reach the original. Processes are not copied.
    async fn fork(&self) -> Result<Box<dyn Sandbox>>;

    /// Saves the present state of the files under a name, for [`SandboxSource::Saved`]. Replaces an existing state of
    /// that name; an interrupted save leaves no state.
    async fn save(&self, name: &str) -> Result<()>;

    /// Checks that the sandbox is alive, in well under a second. Fails with kind `Dead` if not.
    async fn health(&self) -> Result<()>;

    /// Ends all processes and removes the sandbox. Stopping it twice is not an error.
    async fn stop(&self) -> Result<()>;
}

/// Returns an id that no other process, on any machine, is likely to choose at the same moment.
pub(crate) fn unique_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{now:x}-{count:x}", std::process::id())
}

/// Maximum bytes of a process's output, and of a file that is read from a sandbox.
pub(crate) const MAX_OUTPUT_LEN: u64 = 64 << 20;

/// Maximum bytes of error messages that are kept.
const MAX_MESSAGES: u64 = 64 << 10;

/// Runs a command to its end. If the deadline passes, the process keeps running until [`Sandbox::stop`].
///
/// # Errors
///
/// Fails if the command does not start, its output exceeds 64 MiB, or the deadline passes.
pub async fn output(
    sandbox: &dyn Sandbox,
    command: &Command,
    deadline: Duration,
) -> Result<Output> {
    output_with_input(sandbox, command, b"", deadline).await
}

/// Runs a command like [`output`], with this standard input.
///
/// # Errors
///
/// Fails like [`output`]. A process that does not read its input is no error.
pub async fn output_with_input(
    sandbox: &dyn Sandbox,
    command: &Command,
    input: &[u8],
    deadline: Duration,
) -> Result<Output> {
    let mut process = sandbox.spawn(command).await?;
    let work = async {
        let doing = || format!("the output of `{}`", command.argv.join(" "));
        let write = async move {
            // Fails if the process ends without reading.
            let _ = process.stdin.write_all(input).await;
            let _ = process.stdin.shutdown().await;
            drop(process.stdin);
            Ok(())
        };
        let out = read_all(&doing, process.stdout);
        let err = read_all(&doing, process.stderr);
        let (_, out, err) = tokio::try_join!(write, out, err)?;
        Ok(Output {
            code: process.exit.await?,
            stdout: out,
            stderr: err,
        })
    };
    match tokio::time::timeout(deadline, work).await {
        Ok(result) => result,
        Err(_) => Err(SandboxError::system(format!(
            "run `{}`: it did not end within {} s",
            command.argv.join(" "),
            deadline.as_secs()
        ))),
    }
}

/// Reads the whole output of a process. Code in the sandbox may print without end, so more than [`MAX_OUTPUT_LEN`]
/// bytes are an error. `name` is the name of the process in the error.
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
    Err(SandboxError::system(format!(
        "read {}: it is larger than {} MiB",
        name(),
        MAX_OUTPUT_LEN >> 20
    )))
}

/// Reads messages to their end and returns the beginning.
pub(crate) async fn read_messages(mut stream: impl AsyncRead + Unpin) -> std::io::Result<String> {
    let mut beginning = Vec::new();
    (&mut stream)
        .take(MAX_MESSAGES)
        .read_to_end(&mut beginning)
        .await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&beginning).trim().to_owned())
}
