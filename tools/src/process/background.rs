//! A process that keeps running after a tool has answered. Its process tree survives while other programs come and go.

use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use nix::unistd::Pid;

use super::{Command, launch, tree};
use crate::error::Result;

/// A background process, which is ended with all its descendants when this is dropped.
pub struct BackgroundProcess {
    child: Child,
}

impl BackgroundProcess {
    /// Starts a program that reads from a descriptor; its output is lost. `stdin` and `max_output_bytes` of the command
    /// are ignored.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be started.
    pub fn start(command: &Command, stdin: OwnedFd) -> Result<Self> {
        let output = tempfile::tempfile()?;
        let (stdout, stderr) = (output.try_clone()?, output.try_clone()?);
        let streams = [stdin.into(), stdout.into(), stderr.into()];
        let child = launch(command, streams.map(|fd: Stdio| fd), None)?;
        tree::protect(child.id().cast_signed());
        Ok(BackgroundProcess { child })
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        let pid = self.child.id().cast_signed();
        tree::unprotect(pid);
        tree::end(Pid::from_raw(pid));
        let _ = self.child.wait();
    }
}
