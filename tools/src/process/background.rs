//! A process that stays when a tool has answered, and what it started: programs that come and go beside it leave it
//! alone.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use nix::unistd::Pid;

use super::{Command, launch, tree};
use crate::error::ToolError;

/// Ended, with all that it started, when this is dropped.
pub struct BackgroundProcess {
    child: Child,
}

impl BackgroundProcess {
    /// Starts a program whose standard input is a descriptor, and which prints into a file. Its `stdin` and `keep` are
    /// not for it.
    pub fn start(command: &Command, stdin: OwnedFd, output: &File) -> Result<Self, ToolError> {
        let (stdout, stderr) = (output.try_clone()?, output.try_clone()?);
        let streams = [stdin.into(), stdout.into(), stderr.into()];
        let child = launch(command, streams.map(|fd: Stdio| fd), None)?;
        tree::spare(child.id().cast_signed());
        Ok(BackgroundProcess { child })
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        let pid = self.child.id().cast_signed();
        tree::spare_no_more(pid);
        tree::end(Pid::from_raw(pid));
        let _ = self.child.wait();
    }
}
