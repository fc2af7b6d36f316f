//! Running a program with a deadline, and leaving nothing of it behind.
//!
//! Every program gets its own session, a clean environment and pipes of its own: it can neither write to
//! nor read from the stdio on which the toolbox speaks. When it ends, or when its deadline comes, whatever
//! it started is killed and reaped too (see [`tree`]). What it does to files is not looked at here.

mod output;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::config::Config;
use crate::tool::ToolError;

pub use output::Captured;
pub use tree::{adopt_orphans, end_everything};

/// One program at a time: what appears below this process while one runs belongs to it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A program to run.
#[derive(Debug, Clone)]
pub struct Command {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub directory: PathBuf,
    /// The whole environment; nothing is inherited. See [`environment`].
    pub env: BTreeMap<String, String>,
    /// Empty: stdin is closed.
    pub stdin: Vec<u8>,
    /// stderr goes where stdout goes, in the order of writing.
    pub merge: bool,
    /// Bytes kept of each stream, half from its beginning and half from its end.
    pub keep: usize,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exit(i32),
    Signal(i32),
    /// The deadline came first.
    Deadline,
}

#[derive(Debug, Clone)]
pub struct Finished {
    pub ended: Ended,
    pub stdout: Captured,
    /// Empty where the streams were merged.
    pub stderr: Captured,
    /// Wall time.
    pub took: Duration,
}

impl Finished {
    pub fn timed_out(&self) -> bool {
        self.ended == Ended::Deadline
    }

    pub fn exit_code(&self) -> Option<i32> {
        match self.ended {
            Ended::Exit(code) => Some(code),
            Ended::Signal(_) | Ended::Deadline => None,
        }
    }
}

/// The environment of every program that a tool starts: nothing that the toolbox itself was given except
/// `PATH`, and what the configuration adds.
pub fn environment(config: &Config) -> BTreeMap<String, String> {
    const SYSTEM: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let mut env = BTreeMap::from(
        [
            ("LANG", "C.UTF-8"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONHASHSEED", "0"),
            ("TERM", "dumb"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    env.insert(
        "HOME".into(),
        config.scratch.join("home").display().to_string(),
    );
    env.insert(
        "PATH".into(),
        std::env::var("PATH").unwrap_or_else(|_| SYSTEM.to_owned()),
    );
    env.extend(config.env.clone());
    if let Some(folder) = config.python.parent().filter(|f| !f.as_os_str().is_empty()) {
        let path = env.get("PATH").map_or(SYSTEM, String::as_str);
        let path = format!("{}:{path}", folder.display());
        env.insert("PATH".into(), path);
        if let Some(home) = folder.parent().filter(|h| h.join("pyvenv.cfg").exists()) {
            env.insert("VIRTUAL_ENV".into(), home.display().to_string());
        }
    }
    env
}

/// Makes the folder that `HOME` names.
pub fn make_home(scratch: &Path) -> Result<(), ToolError> {
    std::fs::create_dir_all(scratch.join("home"))?;
    Ok(())
}

/// Runs a program to its end or to `deadline`. That it could not be started is [`ToolError::Broken`]; how
/// it ended is data.
pub fn run(command: &Command, deadline: Instant) -> Result<Finished, ToolError> {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let started = Instant::now();
    let mut spawn = std::process::Command::new(&command.program);
    spawn
        .args(&command.args)
        .current_dir(&command.directory)
        .env_clear()
        .envs(&command.env)
        .stdin(if command.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        });
    let (stdout, writer) = std::io::pipe()?;
    let stderr = if command.merge {
        spawn.stderr(writer.try_clone()?);
        None
    } else {
        let (stderr, writer) = std::io::pipe()?;
        spawn.stderr(writer);
        Some(stderr)
    };
    spawn.stdout(writer);
    // SAFETY: both are plain system calls, and touch no memory of this process.
    unsafe {
        spawn.pre_exec(|| {
            nix::unistd::setsid()?;
            // If the toolbox itself is killed, nobody is left to look after its program.
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
            Ok(())
        });
    }
    let mut child = spawn.spawn().map_err(|e| {
        ToolError::Broken(format!(
            "could not start {}: {e}",
            command.program.display()
        ))
    })?;
    drop(spawn); // closes our copies of the pipes' writing ends
    let pid = Pid::from_raw(child.id().cast_signed());

    let out = Reader::start(stdout, command.keep);
    let err = stderr.map(|stream| Reader::start(stream, command.keep));
    if let Some(mut stdin) = child.stdin.take() {
        let bytes = command.stdin.clone();
        // A program that never reads must not hold us up; it ends with the tree.
        std::thread::spawn(move || stdin.write_all(&bytes));
    }

    let in_time = wait_without_reaping(pid, deadline);
    tree::end(pid);
    let status = child.wait()?;
    let ended = match (in_time, status.code(), status.signal()) {
        (false, ..) => Ended::Deadline,
        (true, Some(code), _) => Ended::Exit(code),
        (true, None, signal) => Ended::Signal(signal.unwrap_or_default()),
    };
    Ok(Finished {
        ended,
        stdout: out.finish(),
        stderr: err.map(Reader::finish).unwrap_or_default(),
        took: started.elapsed(),
    })
}

/// Waits for a process's end and leaves it a zombie, so that its number cannot pass to another process
/// before its tree is ended. `false`: the deadline came first.
fn wait_without_reaping(pid: Pid, deadline: Instant) -> bool {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(pid), flags) == Err(nix::errno::Errno::EINTR) {}
        let _ = done.send(());
    });
    let left = deadline.saturating_duration_since(Instant::now());
    ended.recv_timeout(left).is_ok()
}

/// Reads a stream to its end on a thread of its own.
struct Reader {
    captured: Arc<Mutex<Captured>>,
    ended: mpsc::Receiver<()>,
}

impl Reader {
    fn start(mut stream: impl Read + Send + 'static, keep: usize) -> Self {
        let captured = Arc::new(Mutex::new(Captured::new(keep)));
        let (done, ended) = mpsc::channel();
        let shared = Arc::clone(&captured);
        std::thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => lock(&shared).push(&buffer[..n]),
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = done.send(());
        });
        Reader { captured, ended }
    }

    /// What was read. Waits for the end of the stream, but not for a process that nothing could end.
    fn finish(self) -> Captured {
        let _ = self.ended.recv_timeout(Duration::from_secs(2));
        lock(&self.captured).clone()
    }
}

fn lock(captured: &Mutex<Captured>) -> MutexGuard<'_, Captured> {
    captured.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
