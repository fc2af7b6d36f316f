//! The keeper's main loop: waits for the sandbox to end, and enforces its limits.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::super::protocol::{Isolation, Setup};
use super::cgroup::Cgroup;
use super::disk::{DiskWatch, MAX_PAUSE};
use super::error::{Result, StepContext};
use super::kernel_memory;
use super::memory::{self, MemoryWatch};

/// Maximum delay for noticing the end on kernels that do not report it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// End of the supervisor: its exit code, and the exceeded limit if that was the reason.
pub(super) struct SupervisorExit {
    pub code: i32,
    pub why: Option<String>,
}

/// Joins namespaces of the sandbox, and returns whether that succeeded. In them this process can read what an ordinary
/// user cannot: folders that sandboxed code has closed, sockets and System V objects. Must be called before the
/// supervisor protects itself.
pub(super) fn join_namespaces(setup: &Setup, supervisor: Pid, cgroup: Option<&Cgroup>) -> bool {
    let mut flags = CloneFlags::empty();
    if setup.owner.is_none() {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    let is_all_counted = cgroup.is_some_and(|cgroup| cgroup.counts_internet_sockets);
    if !is_all_counted {
        flags |= CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    }
    flags.is_empty() || open(supervisor).is_some_and(|process| setns(process, flags).is_ok())
}

/// Waits until the supervisor has ended, and ends it if a limit is exceeded.
pub(super) fn wait_for_end(
    setup: &Setup,
    supervisor: Pid,
    cgroup: Option<&Cgroup>,
    has_joined: bool,
) -> Result<SupervisorExit> {
    let descriptor = open(supervisor);
    let mut disk = DiskWatch::new(setup, supervisor);
    let watched = cgroup.is_none() && setup.isolation != Isolation::None;
    // Only then does the sandbox have its own namespaces for everything that the kernel holds for it.
    let sees_kernel = has_joined && setup.isolation == Isolation::Namespaces;
    let mut memory =
        watched.then(|| MemoryWatch::new(setup.limits.memory, supervisor, sees_kernel));
    let watches_sockets =
        sees_kernel && cgroup.is_some_and(|cgroup| !cgroup.counts_internet_sockets);
    let sockets = || {
        let held = watches_sockets.then(kernel_memory::internet_buffers)??;
        (held > setup.limits.memory).then(|| memory::over_limit(setup.limits.memory))
    };
    let mut looked = Instant::now();
    let mut why = None;
    loop {
        pause(descriptor.as_ref(), disk.pause());
        match waitpid(supervisor, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(SupervisorExit { code, why }),
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                let by_the_kernel = || {
                    let ran_out = signal == Signal::SIGKILL && cgroup?.ran_out();
                    ran_out.then(|| memory::over_limit(setup.limits.memory))
                };
                return Ok(SupervisorExit {
                    code: 128 + signal as i32,
                    why: why.or_else(by_the_kernel),
                });
            }
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error).doing("wait for the supervisor"),
        }
        if why.is_none() {
            why = disk.check();
            if why.is_none() && looked.elapsed() >= MAX_PAUSE {
                why = memory
                    .as_mut()
                    .and_then(MemoryWatch::check)
                    .or_else(sockets);
                looked = Instant::now();
            }
            if why.is_some() {
                // Its namespace ends with it; without one, the keeper ends the remaining processes.
                let _ = kill(supervisor, Signal::SIGKILL);
            }
        }
    }
}

/// Opens a descriptor that becomes readable when the process ends.
fn open(process: Pid) -> Option<OwnedFd> {
    // SAFETY: plain numbers; the descriptor has no other owner.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0);
        (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as i32))
    }
}

fn pause(end: Option<&OwnedFd>, time: Duration) {
    match end {
        Some(end) => {
            let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
            let _ = poll(&mut [PollFd::new(end.as_fd(), PollFlags::POLLIN)], timeout);
        }
        None => std::thread::sleep(time.min(POLL_INTERVAL)),
    }
}
