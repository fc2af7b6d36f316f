//! Reads the output and the report of a running program as they arrive, all on one thread.
//!
//! One thread keeps the toolbox's set of threads constant: the confinement identifies them by their ids.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::{CapturedStream, ProcessReport, interrupt};

/// Poll interval on kernels that cannot signal the end of a process (before 5.3).
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time limit for the end of a stream whose holder could not be killed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Streams<'a> {
    pub stdin: Option<StdinWriter>,
    pub stdout: Option<OwnedFd>,
    /// `None` from the start if stderr is merged into stdout.
    pub stderr: Option<OwnedFd>,
    pub out: CapturedStream,
    pub err: CapturedStream,
    pub report: Option<&'a mut ProcessReport>,
}

/// Input of a program, and how much of it was written.
pub(super) struct StdinWriter {
    pipe: std::fs::File,
    bytes: Vec<u8>,
    written: usize,
}

impl StdinWriter {
    pub(super) fn new(pipe: OwnedFd, bytes: &[u8]) -> std::io::Result<Self> {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(StdinWriter {
            pipe: pipe.into(),
            bytes: bytes.to_vec(),
            written: 0,
        })
    }

    /// Writes as much as fits. Returns `false` if there is nothing more to do.
    fn write(&mut self) -> bool {
        match self.pipe.write(&self.bytes[self.written..]) {
            Ok(n) => {
                self.written += n;
                self.written < self.bytes.len()
            }
            Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// The reason why the wait for a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    Exited,
    Deadline,
    /// The call was interrupted.
    Interrupted,
}

impl Streams<'_> {
    /// Waits for a process to end and leaves it a zombie, so that its id cannot be reused before its tree is ended.
    pub(super) fn until_ended(&mut self, pid: Pid, deadline: Instant) -> std::io::Result<WaitEnd> {
        let process = open_pidfd(pid);
        loop {
            if has_ended(pid) {
                return Ok(WaitEnd::Exited);
            }
            if interrupt::is_raised() {
                return Ok(WaitEnd::Interrupted);
            }
            let remaining_time = deadline.saturating_duration_since(Instant::now());
            if remaining_time.is_zero() {
                return Ok(WaitEnd::Deadline);
            }
            let interval = process.as_ref().map_or(POLL_INTERVAL, |_| remaining_time);
            self.step(process.as_ref(), interval.min(remaining_time))?;
        }
    }

    /// Reads the rest of the streams, once every writer has ended.
    pub(super) fn drain(&mut self) -> std::io::Result<()> {
        self.stdin = None;
        let end = Instant::now() + DRAIN_TIMEOUT;
        while self.stdout.is_some() || self.stderr.is_some() {
            let remaining_time = end.saturating_duration_since(Instant::now());
            if remaining_time.is_zero() {
                break;
            }
            self.step(None, remaining_time)?;
        }
        if let Some(report) = &mut self.report {
            report.read()?;
        }
        Ok(())
    }

    /// Waits until a descriptor is ready, and handles it.
    fn step(&mut self, process: Option<&OwnedFd>, max_wait: Duration) -> std::io::Result<()> {
        // Wait one millisecond longer than the time left, so that it has passed on return.
        let wait =
            PollTimeout::try_from(max_wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let fds = [
            process.map(|fd| readable(fd.as_fd())),
            self.stdout.as_ref().map(|fd| readable(fd.as_fd())),
            self.stderr.as_ref().map(|fd| readable(fd.as_fd())),
            (self.report.as_ref())
                .and_then(|report| report.as_fd())
                .map(readable),
            self.stdin
                .as_ref()
                .map(|feed| PollFd::new(feed.pipe.as_fd(), PollFlags::POLLOUT)),
            // Only while waiting for a process: after that, the streams are read to their end.
            process.and(interrupt::descriptor()).map(readable),
        ];
        let present: Vec<usize> = (0..fds.len()).filter(|i| fds[*i].is_some()).collect();
        let mut polled: Vec<PollFd<'_>> = fds.into_iter().flatten().collect();
        match poll(&mut polled, wait) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        let ready: Vec<usize> = present
            .into_iter()
            .zip(&polled)
            .filter(|(_, fd)| fd.revents().is_some_and(|events| !events.is_empty()))
            .map(|(i, _)| i)
            .collect();
        drop(polled);
        for i in ready {
            match i {
                1 => read(&mut self.stdout, &mut self.out),
                2 => read(&mut self.stderr, &mut self.err),
                3 => {
                    if let Some(report) = &mut self.report {
                        report.read()?;
                    }
                }
                4 => {
                    if let Some(feed) = &mut self.stdin
                        && !feed.write()
                    {
                        self.stdin = None;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads once; closes a stream at its end.
fn read(stream: &mut Option<OwnedFd>, captured: &mut CapturedStream) {
    let mut buffer = [0; 64 * 1024];
    let Some(fd) = stream else { return };
    match nix::unistd::read(&*fd, &mut buffer) {
        Ok(0) => *stream = None,
        Ok(n) => captured.push(&buffer[..n]),
        Err(Errno::EINTR | Errno::EAGAIN) => {}
        Err(_) => *stream = None,
    }
}

/// Returns a descriptor that becomes readable when the process ends; `None` if the kernel has no pidfds.
fn open_pidfd(pid: Pid) -> Option<OwnedFd> {
    // SAFETY: the call takes only numbers, and the returned descriptor has no other owner.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

fn has_ended(pid: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    match waitid(Id::Pid(pid), flags) {
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
        // An error means that there is no such child, so there is nothing to wait for.
        Ok(_) | Err(_) => true,
    }
}
