//! What the keeper does while the sandbox lives: waits for its end, and sees to it that it keeps to its limits.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::super::protocol::{Isolation, Setup};
use super::cgroup::Cgroup;
use super::disk::DiskWatch;
use super::memory::{self, MemoryWatch};

/// How often limits are checked.
const STEP: Duration = Duration::from_millis(200);

/// How it ended: the supervisor's exit code, and why, if that was for a limit.
pub struct SupervisorExit {
    pub code: i32,
    pub why: Option<String>,
}

/// Returns when the supervisor has ended; ends it where a limit is exceeded.
pub fn until_the_end(
    setup: &Setup,
    supervisor: Pid,
    cgroup: Option<&Cgroup>,
) -> Result<SupervisorExit, String> {
    let descriptor = open(supervisor);
    let mut disk = DiskWatch::new(setup);
    let watched = cgroup.is_none() && setup.isolation != Isolation::None;
    let mut memory = watched.then(|| MemoryWatch::new(setup.limits.memory, supervisor));
    let mut why = None;
    loop {
        pause(descriptor.as_ref());
        match waitpid(supervisor, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(SupervisorExit { code, why }),
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                let by_the_kernel = || {
                    let ran_out = signal == Signal::SIGKILL && cgroup?.ran_out();
                    ran_out.then(|| memory::beyond(setup.limits.memory))
                };
                return Ok(SupervisorExit {
                    code: 128 + signal as i32,
                    why: why.or_else(by_the_kernel),
                });
            }
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(e) => return Err(format!("waiting for the supervisor: {e}")),
        }
        if why.is_none() {
            why = disk.look().or_else(|| memory.as_mut()?.look());
            if why.is_some() {
                // Its namespace ends with it; without one the keeper ends what is left.
                let _ = kill(supervisor, Signal::SIGKILL);
            }
        }
    }
}

/// Becomes readable when the process ends.
fn open(process: Pid) -> Option<OwnedFd> {
    // SAFETY: plain numbers; the descriptor is nobody else's.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0);
        (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as i32))
    }
}

fn pause(end: Option<&OwnedFd>) {
    match end {
        Some(end) => {
            let timeout = PollTimeout::try_from(STEP).unwrap_or(PollTimeout::ZERO);
            let _ = poll(&mut [PollFd::new(end.as_fd(), PollFlags::POLLIN)], timeout);
        }
        None => std::thread::sleep(STEP / 4),
    }
}
