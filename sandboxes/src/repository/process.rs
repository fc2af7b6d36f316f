//! Execution of git on untrusted input, with limits for memory, output, time and files.
//!
//! Stopping a program also stops everything that it started (`git fetch` consists of several programs).

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::limits;
use crate::error::SandboxError;
use crate::programs;
use crate::sandbox::Result;

/// The output of a program.
pub(super) struct GitOutput {
    pub ok: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

pub(super) struct ProcessLimits {
    /// Maximum bytes of standard output.
    pub output: u64,
    pub time: Duration,
    /// A folder, and the maximum bytes of its files.
    pub folder: Option<(PathBuf, u64)>,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        ProcessLimits {
            output: limits::LISTING,
            time: limits::GIT_TIMEOUT,
            folder: None,
        }
    }
}

/// Maximum bytes of error output that are kept.
const MAX_STDERR_BYTES: u64 = 64 << 10;
/// Interval at which a folder is measured.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Prepares a program of the host that reads untrusted input.
///
/// The program and each of its children get at most [`limits::MEMORY`]. A shell sets the limit and then becomes the
/// program.
pub(super) fn limited(program: &str) -> Command {
    if programs::named(program).is_empty() {
        // Starting it then fails with `NotFound`, which a shell would hide.
        return programs::program(program);
    }
    let script = "ulimit -d \"$0\" 2>/dev/null; exec \"$@\"";
    let mut shell = programs::program("sh");
    shell.args(["-c", script, &(limits::MEMORY >> 10).to_string(), program]);
    shell
}

/// A program and everything that it starts. None of them outlives this value.
pub(super) struct ProcessGroup {
    pub child: Child,
    has_ended: bool,
}

impl ProcessGroup {
    pub(super) fn start(mut command: Command) -> Result<ProcessGroup> {
        // The process ID is then also the ID of the group.
        let child = command.process_group(0).spawn().map_err(not_started)?;
        Ok(ProcessGroup {
            child,
            has_ended: false,
        })
    }

    /// Waits until the program ends, at most `time` since `began`. Returns whether it succeeded, or `None` after a
    /// timeout.
    pub(super) fn wait(&mut self, began: Instant, time: Duration) -> Result<Option<bool>> {
        let mut pause = Duration::from_micros(100);
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.has_ended = true;
                return Ok(Some(status.success()));
            }
            if began.elapsed() > time {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(POLL_INTERVAL);
        }
    }

    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        // SAFETY: plain numbers. The process was not waited for, so that no other one has its number.
        unsafe { libc::killpg(self.child.id().cast_signed(), libc::SIGKILL) };
        // The program was killed and not waited for, so this cannot block or fail.
        let _ = self.child.wait();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a program to its end. Fails with kind `Input` if it exceeds its limits.
pub(super) fn run(mut command: Command, input: &[u8], bounds: &ProcessLimits) -> Result<GitOutput> {
    command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut program = ProcessGroup::start(command)?;
    if let Some(mut stdin) = program.child.stdin.take() {
        let input = input.to_vec();
        // A program that does not read all input explains that on stderr.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = read(program.child.stdout.take(), bounds.output.saturating_add(1));
    let stderr = read(program.child.stderr.take(), MAX_STDERR_BYTES);
    let began = Instant::now();
    let (mut out, mut messages) = (None, None);
    let wait = if bounds.folder.is_some() {
        POLL_INTERVAL
    } else {
        bounds.time
    };
    let mut exceeded = None;
    while out.is_none() || messages.is_none() {
        let next = if out.is_none() { &stdout } else { &stderr };
        match next.recv_timeout(wait) {
            Ok(bytes) if out.is_none() => out = Some(bytes),
            Ok(bytes) => messages = Some(bytes),
            // A reader that failed has read nothing.
            Err(RecvTimeoutError::Disconnected) if out.is_none() => out = Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => messages = Some(Vec::new()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        exceeded = exceeds(bounds, began, out.as_deref());
        if exceeded.is_some() {
            break;
        }
    }
    // A program may close its output and still run.
    let ok = match exceeded {
        None => program.wait(began, bounds.time)?,
        Some(_) => None,
    };
    let Some(ok) = ok else {
        drop(program);
        let what = exceeded.unwrap_or_else(|| too_long(bounds.time));
        return Err(SandboxError::input(what));
    };
    Ok(GitOutput {
        ok,
        stdout: out.unwrap_or_default(),
        stderr: String::from_utf8_lossy(&messages.unwrap_or_default())
            .trim()
            .to_owned(),
    })
}

/// Returns the error for a git that could not be started.
fn not_started(error: std::io::Error) -> SandboxError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return SandboxError::unavailable("git is not installed, or not on the PATH")
            .hint("install git (Debian: apt-get install git)");
    }
    SandboxError::from_spawn_error("start git", &error)
}

fn too_long(time: Duration) -> String {
    format!("it took longer than {} s", time.as_secs())
}

fn exceeds(bounds: &ProcessLimits, began: Instant, out: Option<&[u8]>) -> Option<String> {
    if out.is_some_and(|out| out.len() as u64 > bounds.output) {
        let max_size = limits::human_size(bounds.output);
        return Some(format!("it printed more than {max_size}"));
    }
    if began.elapsed() > bounds.time {
        return Some(too_long(bounds.time));
    }
    match &bounds.folder {
        Some((folder, max_bytes)) if size(folder, *max_bytes) > *max_bytes => {
            let max_size = limits::human_size(*max_bytes);
            Some(format!("it wrote more than {max_size}"))
        }
        _ => None,
    }
}

/// Returns the bytes of all files below a folder. Stops counting soon after it exceeds `max_bytes`.
pub(super) fn size(folder: &Path, max_bytes: u64) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // Files may appear and disappear meanwhile.
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.path().symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += metadata.len();
            }
        }
        if bytes > max_bytes {
            break;
        }
    }
    bytes
}

/// Reads to the end in a thread, and keeps the first `max_bytes` bytes.
fn read(from: Option<impl Read + Send + 'static>, max_bytes: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let Some(mut from) = from else {
            return;
        };
        let mut bytes = Vec::new();
        // An error counts as the end.
        let _ = (&mut from).take(max_bytes).read_to_end(&mut bytes);
        let full = bytes.len() as u64 == max_bytes;
        // Messages are read to the end, so that the program does not block on a full pipe. Excess output fails the
        // command anyway.
        if full && max_bytes == MAX_STDERR_BYTES {
            let _ = std::io::copy(&mut from, &mut std::io::sink());
        }
        drop(from);
        // Sending fails only if there is no receiver any more.
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests;
