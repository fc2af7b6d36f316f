//! Runs programs with a deadline, and leaves no process of theirs behind.
//!
//! Every program gets its own session, a clean environment and its own pipes, so it can neither write to nor read from
//! the toolbox's stdio. When it ends or its deadline passes, every process that it started is killed and reaped (see
//! [`tree`]). It cannot reach the toolbox (see [`confinement`]). Its other changes to files are not checked here.

mod background;
pub mod confinement;
pub mod interrupt;
mod output;
mod report;
mod streams;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::config::Config;
use crate::error::{Result, ToolError};
use crate::metadata;
use confinement::ChildConfinement;
use streams::{StdinWriter, Streams, WaitEnd};

pub use background::BackgroundProcess;
pub use output::CapturedStream;
pub use report::{ProcessReport, REPORT_FD};
pub use tree::{adopt_orphans, end_everything, end_leftovers};

/// Time limit and delay for retries if the executable is still open for writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
const BUSY_DELAY: Duration = Duration::from_millis(5);

/// Allows one program at a time: every process that appears below this one belongs to the running program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A program to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// Path of the executable.
    pub program: PathBuf,
    /// Arguments, without the name of the program.
    pub args: Vec<OsString>,
    /// Folder in which the program starts.
    pub directory: PathBuf,
    /// The whole environment; nothing is inherited. See [`environment`].
    pub env: BTreeMap<String, String>,
    /// Input of the program. If empty, stdin is closed.
    pub stdin: Vec<u8>,
    /// Whether to merge stderr into stdout, in the order of writing.
    pub merge: bool,
    /// Maximum bytes kept of each stream, half from its beginning and half from its end.
    pub max_output_bytes: usize,
}

impl Command {
    /// Creates a command for the interpreter of the environment, without input. Its streams are merged, and none of its
    /// output is kept.
    pub fn python(config: &Config, args: Vec<OsString>, directory: impl Into<PathBuf>) -> Self {
        Command {
            program: config.python.clone(),
            args,
            directory: directory.into(),
            env: environment(config),
            stdin: Vec::new(),
            merge: true,
            max_output_bytes: 0,
        }
    }
}

/// The reason why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// The program exited with this status.
    Exit(i32),
    /// A signal with this number ended the program.
    Signal(i32),
    /// The program was killed at its deadline.
    Deadline,
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitReason::Exit(code) => write!(f, "the process ended with exit status {code}"),
            ExitReason::Signal(signal) => write!(f, "the process was ended by signal {signal}"),
            ExitReason::Deadline => f.write_str("the deadline passed"),
        }
    }
}

impl ExitReason {
    /// Returns the exit status; `None` if a signal or the deadline ended the program.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            ExitReason::Exit(code) => Some(code),
            ExitReason::Signal(_) | ExitReason::Deadline => None,
        }
    }
}

/// The end and the output of a program.
#[derive(Debug, Clone)]
pub struct ProcessOutput {
    /// Reason why the program ended.
    pub ended: ExitReason,
    /// Standard output, with standard error if the streams were merged.
    pub stdout: CapturedStream,
    /// Empty if the streams were merged.
    pub stderr: CapturedStream,
    /// Wall time.
    pub took: Duration,
}

impl ProcessOutput {
    /// Returns whether the program was killed at its deadline.
    pub fn timed_out(&self) -> bool {
        self.ended == ExitReason::Deadline
    }

    /// Returns the exit status; `None` if a signal or the deadline ended the program.
    pub fn exit_code(&self) -> Option<i32> {
        self.ended.exit_code()
    }
}

/// Returns the environment of every program that a tool starts. It inherits only `PATH`, `TZ` and `PYTHONPATH` from
/// the toolbox (a sandbox without its own root lists editable installs there), and adds the variables of the
/// configuration.
pub fn environment(config: &Config) -> BTreeMap<String, String> {
    const SYSTEM: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let home = config.scratch.join("home").display().to_string();
    let path = std::env::var("PATH");
    let variables = [
        ("HOME", home.as_str()),
        ("LANG", "C.UTF-8"),
        ("PATH", path.as_deref().unwrap_or(SYSTEM)),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("TERM", "dumb"),
    ];
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut env = BTreeMap::from(variables.map(owned));
    env.extend(std::env::var("TZ").map(|zone| ("TZ".to_owned(), zone)));
    env.extend(config.env.clone());
    if let Ok(inherited_path) = std::env::var("PYTHONPATH") {
        let path = match config.env.get("PYTHONPATH") {
            Some(configured) => format!("{inherited_path}:{configured}"),
            None => inherited_path,
        };
        env.insert("PYTHONPATH".into(), path);
    }
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

/// Creates the folder for `HOME`. Anything that programs left in its place, or in its parent's place, is removed.
///
/// # Errors
///
/// Fails if a folder cannot be created.
pub fn make_home(scratch: &Path) -> Result<()> {
    make_folder(scratch)?;
    make_folder(&scratch.join("home"))
}

/// Creates a folder where programs may write. It follows no links, since a program may have put one there.
///
/// # Errors
///
/// Fails if the folder cannot be created or made accessible.
pub fn make_folder(folder: &Path) -> Result<()> {
    match std::fs::symlink_metadata(folder) {
        Ok(folder_metadata) if folder_metadata.is_dir() => {
            if folder_metadata.permissions().mode() & 0o700 != 0o700 {
                metadata::set_permissions_at(folder, &std::fs::Permissions::from_mode(0o755))?;
            }
            return Ok(());
        }
        Ok(_) => std::fs::remove_file(folder)?,
        Err(_) => {}
    }
    std::fs::create_dir_all(folder)?;
    Ok(())
}

/// Creates an empty folder with a fixed name where programs may write. Any earlier content is removed.
///
/// # Errors
///
/// Fails if the earlier content cannot be renamed, or the folder cannot be created.
pub fn recreate_folder(folder: &Path) -> Result<()> {
    if let Some(above) = folder.parent() {
        make_folder(above)?;
    }
    if std::fs::symlink_metadata(folder).is_ok() {
        // Renaming always works; removing may fail, and then the old folder is only left behind.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH);
        let aside = folder.with_extension(format!("{}", moment.unwrap_or_default().as_nanos()));
        std::fs::rename(folder, &aside)?;
        let _ = std::fs::remove_dir_all(&aside).or_else(|_| std::fs::remove_file(&aside));
    }
    std::fs::create_dir(folder)?;
    Ok(())
}

/// Runs a program to its end or to `deadline`. The result says how it ended.
///
/// # Errors
///
/// Returns [`ToolError::Broken`] if it cannot be started, and [`ToolError::Cancelled`] if the call is interrupted.
pub fn run(command: &Command, deadline: Instant) -> Result<ProcessOutput> {
    run_recorded(command, deadline, None)
}

/// Runs a program like [`run`], and also reads its report while it runs.
///
/// # Errors
///
/// Fails like [`run`].
pub fn run_recorded(
    command: &Command,
    deadline: Instant,
    report: Option<&mut ProcessReport>,
) -> Result<ProcessOutput> {
    let _turn = lock_programs();
    interrupt::check()?;
    let started = Instant::now();
    let (stdout, writer) = std::io::pipe()?;
    let (stderr, error_writer) = if command.merge {
        (None, writer.try_clone()?)
    } else {
        let (stderr, writer) = std::io::pipe()?;
        (Some(stderr), writer)
    };
    let stdin = match command.stdin.is_empty() {
        true => Stdio::null(),
        false => Stdio::piped(),
    };
    let streams = [stdin, writer.into(), error_writer.into()];
    let mut child = launch(command, streams, report.as_deref())?;
    let streams = Streams {
        stdin: child
            .stdin
            .take()
            .map(|pipe| StdinWriter::new(pipe.into(), &command.stdin))
            .transpose()?,
        stdout: Some(stdout.into()),
        stderr: stderr.map(OwnedFd::from),
        out: CapturedStream::new(command.max_output_bytes),
        err: CapturedStream::new(command.max_output_bytes),
        report,
    };
    let pid = Pid::from_raw(child.id().cast_signed());
    watch(pid, streams, started, deadline)
}

/// Waits for a child of this process that leads a session, like [`run_recorded`]. `output` is the pipe that it prints
/// into; `keep` is the maximum number of bytes kept of it.
///
/// # Errors
///
/// Fails like [`run_recorded`], or if `fork` does.
pub fn run_forked(
    fork: impl FnOnce() -> Result<i32>,
    output: OwnedFd,
    keep: usize,
    deadline: Instant,
    report: &mut ProcessReport,
) -> Result<ProcessOutput> {
    let _turn = lock_programs();
    interrupt::check()?;
    let started = Instant::now();
    let streams = Streams {
        stdin: None,
        stdout: Some(output),
        stderr: None,
        out: CapturedStream::new(keep),
        err: CapturedStream::default(),
        report: Some(report),
    };
    watch(Pid::from_raw(fork()?), streams, started, deadline)
}

/// Blocks other programs from running until the guard is dropped.
pub fn lock_programs() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program with its standard streams and its report pipe.
fn launch(command: &Command, streams: [Stdio; 3], report: Option<&ProcessReport>) -> Result<Child> {
    let confined = confinement::child_confinement();
    let report = report.map(ProcessReport::writer).transpose()?;
    let [stdin, stdout, stderr] = streams;
    let mut spawn = std::process::Command::new(&command.program);
    spawn
        .args(&command.args)
        .current_dir(&command.directory)
        .env_clear()
        .envs(&command.env)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    // SAFETY: all are plain system calls, and touch no memory of this process.
    unsafe {
        spawn.pre_exec(move || {
            nix::unistd::setsid()?;
            // If the toolbox is killed, the kernel must end its program too.
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
            confined.as_ref().map_or(Ok(()), ChildConfinement::enter)?;
            if let Some(report) = &report {
                let is_placed = libc::dup2(report.as_raw_fd(), REPORT_FD) == REPORT_FD
                    && libc::fcntl(REPORT_FD, libc::F_SETFD, 0) == 0;
                if !is_placed {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    // Dropping the spawned command closes the parent's writing ends of the pipes.
    let begun = Instant::now();
    loop {
        match spawn.spawn() {
            // Another thread's child still has the executable open for writing until its own exec.
            Err(e)
                if e.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(BUSY_DELAY);
            }
            started => {
                return started.map_err(|e| {
                    let program = command.program.display();
                    ToolError::Broken(format!("could not start {program}: {e}"))
                });
            }
        }
    }
}

/// Reads what a process prints and reports until it ends or its deadline passes, then ends every process it started.
fn watch(
    pid: Pid,
    mut streams: Streams<'_>,
    started: Instant,
    deadline: Instant,
) -> Result<ProcessOutput> {
    let end = streams.until_ended(pid, deadline)?;
    tree::end(pid);
    let status = waitpid(pid, None).map_err(std::io::Error::from)?;
    streams.drain()?;
    let ended = match (end, status) {
        (WaitEnd::Interrupted, _) => return Err(ToolError::Cancelled),
        (WaitEnd::Deadline, _) => ExitReason::Deadline,
        (WaitEnd::Exited, WaitStatus::Exited(_, code)) => ExitReason::Exit(code),
        (WaitEnd::Exited, WaitStatus::Signaled(_, signal, _)) => ExitReason::Signal(signal as i32),
        (WaitEnd::Exited, _) => ExitReason::Signal(0),
    };
    Ok(ProcessOutput {
        ended,
        stdout: streams.out,
        stderr: streams.err,
        took: started.elapsed(),
    })
}

#[cfg(test)]
mod tests;
