//! Runs git on foreign input: its memory, its output, its time and what it writes are bounded.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::limits;
use crate::error::{ErrorKind, SandboxError};
use crate::programs;
use crate::sandbox::Result;

/// What it said.
pub(super) struct GitOutput {
    pub ok: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

pub(super) struct Bounds {
    /// Bytes of its standard output.
    pub output: u64,
    pub time: Duration,
    /// A folder, and the bytes that it may come to hold.
    pub folder: Option<(PathBuf, u64)>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            output: limits::LISTING,
            time: limits::TIME,
            folder: None,
        }
    }
}

/// Bytes of messages that are kept.
const MESSAGES: u64 = 64 << 10;
/// How often a folder is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long output is waited for once the program has been ended.
const GRACE: Duration = Duration::from_secs(1);

/// Prepares a program of the host that reads foreign input. It and what it starts get no more memory than
/// [`limits::MEMORY`] each: a shell sets the limit before it becomes the program.
pub(super) fn limited(program: &str) -> Command {
    if programs::named(program).is_empty() {
        // Starting it fails with `NotFound`, which a shell would hide.
        return programs::program(program);
    }
    let script = "ulimit -d \"$0\" 2>/dev/null; exec \"$@\"";
    let mut shell = programs::program("sh");
    shell.args(["-c", script, &(limits::MEMORY >> 10).to_string(), program]);
    shell
}

/// Runs it to its end. Error of kind `Input` where it goes beyond its bounds.
pub(super) fn run(mut command: Command, input: &[u8], bounds: &Bounds) -> Result<GitOutput> {
    command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_started)?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // A program that does not read to the end says why on stderr.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = read(child.stdout.take(), bounds.output.saturating_add(1));
    let stderr = read(child.stderr.take(), MESSAGES);
    let began = Instant::now();
    let (mut out, mut messages) = (None, None);
    let wait = if bounds.folder.is_some() {
        LOOK
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
    if let Some(what) = exceeded {
        end(&mut child)?;
        // What it started may hold the pipes open; nobody waits for that.
        let _ = stdout.recv_timeout(GRACE);
        return Err(SandboxError::new(ErrorKind::Input, what));
    }
    let ok = child.wait()?.success();
    Ok(GitOutput {
        ok,
        stdout: out.unwrap_or_default(),
        stderr: String::from_utf8_lossy(&messages.unwrap_or_default())
            .trim()
            .to_owned(),
    })
}

/// The error for a git that could not be started.
pub(super) fn not_started(error: std::io::Error) -> SandboxError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return SandboxError::new(
            ErrorKind::Unavailable,
            "git is not installed, or not on the PATH",
        )
        .hint("install git (Debian: apt-get install git)");
    }
    SandboxError::of_spawn("start git", &error)
}

pub(super) fn end(child: &mut Child) -> Result<()> {
    // It may have ended by itself.
    let _ = child.kill();
    child.wait()?;
    Ok(())
}

fn exceeds(bounds: &Bounds, began: Instant, out: Option<&[u8]>) -> Option<String> {
    if out.is_some_and(|out| out.len() as u64 > bounds.output) {
        let most = limits::human_size(bounds.output);
        return Some(format!("it has no end: more than {most} of output"));
    }
    if began.elapsed() > bounds.time {
        return Some(format!("it took longer than {} s", bounds.time.as_secs()));
    }
    match &bounds.folder {
        Some((folder, most)) if size(folder, *most) > *most => {
            let most = limits::human_size(*most);
            Some(format!("it would write more than {most}"))
        }
        _ => None,
    }
}

/// Bytes of all files below a folder; counts no further than just beyond `most`.
pub(super) fn size(folder: &Path, most: u64) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // Files come and go meanwhile.
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(found) = entry.path().symlink_metadata() else {
                continue;
            };
            if found.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += found.len();
            }
        }
        if bytes > most {
            break;
        }
    }
    bytes
}

/// Reads to the end, keeps the first `most` bytes.
fn read(from: Option<impl Read + Send + 'static>, most: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let Some(mut from) = from else {
            return;
        };
        let mut bytes = Vec::new();
        // An error is an end, too.
        let _ = (&mut from).take(most).read_to_end(&mut bytes);
        let full = bytes.len() as u64 == most;
        // Messages are read on, so that nobody waits for room in the pipe; of output it was too much already.
        if full && most == MESSAGES {
            let _ = std::io::copy(&mut from, &mut std::io::sink());
        }
        drop(from);
        // Nobody waits any more if this fails.
        let _ = sender.send(bytes);
    });
    receiver
}
