//! Ends leftover processes of a sandbox without a pid namespace, whose orphans become children of the keeper.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::processes::descendants;

/// Kills all descendants and waits for them. They are stopped first, so that they cannot start new ones.
pub(super) fn end_all() {
    loop {
        let pids = descendants(Pid::this());
        if pids.is_empty() {
            return;
        }
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &pids {
                let _ = kill(*pid, signal);
            }
        }
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            if status.pid().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(1));
                break;
            }
        }
    }
}
