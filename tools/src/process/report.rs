//! What a run of tests reports: a pipe into which its program writes and out of which only the toolbox reads, so
//! that what was written once stays as it was.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;

use super::confinement::REPORTS;
use crate::tool::ToolError;

/// The most that is kept of one run, in bytes. What comes after is read, so that nobody waits, and forgotten.
const MOST: usize = 128 << 20;
/// Bytes that may be in the pipe: programs seldom wait for the toolbox.
const PIPE: i32 = 1 << 20;

pub struct Report {
    path: PathBuf,
    pipe: std::fs::File,
    bytes: Vec<u8>,
}

impl Report {
    /// A new pipe in the toolbox's own folder.
    pub fn new(private: &Path, name: &str) -> Result<Self, ToolError> {
        let folder = private.join(REPORTS);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(std::io::Error::from)?;
        // For writing too: it has no end while programs come and go.
        let pipe = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NONBLOCK.bits() | OFlag::O_NOFOLLOW.bits())
            .open(&path)?;
        // A smaller pipe will do.
        let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(PIPE));
        Ok(Report {
            path,
            pipe,
            bytes: Vec::new(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What has been written by now.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads what is there.
    pub(super) fn read(&mut self) -> std::io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        // Not for ever: who writes without end must not keep the deadline from being seen.
        for _ in 0..64 {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    let room = MOST.saturating_sub(self.bytes.len());
                    self.bytes.extend_from_slice(&buffer[..n.min(room)]);
                    if n < buffer.len() {
                        return Ok(());
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
