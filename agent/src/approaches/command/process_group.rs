//! The process group of a program. It ends with testwright, even if testwright is killed.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Script of the leader: waits until its input is closed, then kills the group.
///
/// Programs often end their own group with one of these signals, which must not end the leader alone.
const LEADER: &str = "trap '' HUP INT QUIT USR1 USR2 TERM; read -r _; kill -KILL 0";

/// A process group. Dropping it kills all its processes.
///
/// Its leader is a shell whose input only testwright keeps open. If testwright is killed, the kernel closes this input.
/// A parent death signal would reach the program alone, and also if only the thread that started it ends.
pub(super) struct ProcessGroup {
    id: Pid,
    /// Never waited for before the group is killed, so that no other group gets its ID.
    _leader: Child,
    is_killed: bool,
}

impl ProcessGroup {
    /// Starts the leader.
    ///
    /// # Errors
    ///
    /// Fails if the shell cannot be started.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", LEADER])
            .env_clear()
            // The process ID is then also the ID of the group.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let leader = command.spawn();
        let leader = leader.map_err(|error| {
            io::Error::new(error.kind(), format!("could not start /bin/sh: {error}"))
        })?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(ProcessGroup {
            id: id.ok_or_else(|| io::Error::other("the process has no ID"))?,
            _leader: leader,
            is_killed: false,
        })
    }

    /// Returns the ID of the group.
    pub(super) fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Kills all processes of the group.
    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.is_killed, true) {
            return;
        }
        // The leader was not waited for, so no other group has its number. It fails only if all have ended.
        let _ = kill_process_group(self.id, Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
