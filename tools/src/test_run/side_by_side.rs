//! Runs tests concurrently, up to one run per processor. Each run has its own toolbox process, so ending that also ends
//! every process of the run. The runs share the checkout, so one may disturb another; the caller must detect that.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Request, TestRunResult};
use crate::config::Config;
use crate::error::{Result, ToolError};
use crate::outcomes::report::TestReport;
use crate::process::{self, interrupt};
use crate::runners::Options;
use crate::workspace::Checkout;

/// Extra time for a toolbox's own work beside its run.
const GRACE_PERIOD: Duration = Duration::from_secs(20);
/// Maximum bytes of an answer.
const MAX_ANSWER_LEN: u64 = 256 << 20;

/// The name under which this program acts as a toolbox.
static TOOLBOX: OnceLock<&str> = OnceLock::new();

/// Enables concurrent runs: this program acts as a toolbox if it is started by that name.
pub fn enable(toolbox: &'static str) {
    TOOLBOX.get_or_init(|| toolbox);
}

/// Returns the maximum number of concurrent runs.
pub fn max_parallel(config: &Config) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    match TOOLBOX.get() {
        Some(_) => config
            .processors
            .map_or(processors, |limit| limit.clamp(1, processors)),
        None => 1,
    }
}

/// Tests to run, and their options.
pub struct Job {
    /// Node ids, files or folders, relative to the workspace.
    pub ids: Vec<String>,
    /// Options of the run, with its deadline.
    pub options: Options,
}

/// Returns the reports in the order of the jobs; `None` for each job that failed.
///
/// # Errors
///
/// Fails if the call is interrupted, or waiting for the runs fails.
pub fn run(checkout: &Checkout, jobs: &[Job]) -> Result<Vec<Option<TestReport>>> {
    let _turn = process::lock_programs();
    let mut waiting = jobs.iter().enumerate();
    let mut running: Vec<Running> = Vec::new();
    let mut reports: Vec<Option<TestReport>> = jobs.iter().map(|_| None).collect();
    loop {
        interrupt::check()?;
        while running.len() < max_parallel(checkout.config()) {
            let Some((index, job)) = waiting.next() else {
                break;
            };
            running.push(Running::start(checkout, index, job)?);
        }
        if running.is_empty() {
            return Ok(reports);
        }
        wait(&running)?;
        let mut at = 0;
        while let Some(one) = running.get_mut(at) {
            if one.has_ended()? {
                let mut one = running.swap_remove(at);
                reports[one.index] = one.report();
            } else {
                at += 1;
            }
        }
    }
}

struct Running {
    index: usize,
    child: Child,
    output: File,
    written: Vec<u8>,
    /// Time when the process is killed unconditionally.
    end: Instant,
}

impl Running {
    fn start(checkout: &Checkout, index: usize, job: &Job) -> Result<Running> {
        let deadline = job.options.deadline;
        let remaining_time = deadline.saturating_duration_since(Instant::now());
        let request = Request {
            config: checkout.config().clone(),
            ids: job.ids.clone(),
            seconds: remaining_time.as_secs().max(1),
            options: Options {
                lane: index + 1,
                ..job.options.clone()
            },
            coverage: None,
        };
        let request = serde_json::to_vec(&request)
            .map_err(|e| ToolError::Broken(format!("a request could not be encoded: {e}")))?;
        let (output, writer) = std::io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(TOOLBOX.get().unwrap_or(&""))
            .arg("test")
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(Stdio::null());
        // SAFETY: plain system calls on numbers; no memory is involved.
        unsafe {
            command.pre_exec(|| {
                nix::unistd::setsid()?;
                nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        drop(command); // closes the parent's copy of the pipe's writing end
        if let Some(mut stdin) = child.stdin.take() {
            // Fails if the toolbox exits early; then it has no report.
            let _ = stdin.write_all(&request);
        }
        Ok(Running {
            index,
            child,
            output: std::os::fd::OwnedFd::from(output).into(),
            written: Vec::new(),
            end: deadline + GRACE_PERIOD,
        })
    }

    /// Reads once; returns `true` at the end of the output.
    fn has_ended(&mut self) -> std::io::Result<bool> {
        if Instant::now() > self.end {
            self.child.kill()?;
        }
        let mut ready = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut ready, PollTimeout::ZERO), Ok(1..)) {
            return Ok(false);
        }
        let mut buffer = vec![0; 1 << 16];
        match self.output.read(&mut buffer) {
            Ok(0) => Ok(true),
            Ok(n) => {
                if self.written.len() as u64 <= MAX_ANSWER_LEN {
                    self.written.extend_from_slice(&buffer[..n]);
                }
                Ok(false)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn report(&mut self) -> Option<TestReport> {
        let is_done = self.child.wait().is_ok_and(|status| status.success());
        let answer: TestRunResult = serde_json::from_slice(&self.written).ok()?;
        is_done.then_some(answer.report)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a run has written data or reached its time limit, or the call is interrupted.
fn wait(running: &[Running]) -> Result<()> {
    let first_end = running.iter().map(|one| one.end).min();
    let remaining_time = first_end.map_or(GRACE_PERIOD, |end| {
        end.saturating_duration_since(Instant::now())
    });
    let timeout = PollTimeout::try_from(remaining_time + Duration::from_millis(1))
        .unwrap_or(PollTimeout::MAX);
    let mut fds: Vec<PollFd<'_>> = (running.iter())
        .map(|one| one.output.as_fd())
        .chain(interrupt::descriptor())
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(std::io::Error::from(e).into()),
    }
}
