//! What a run of tests reports: a pair of sockets, of which its program has the end that is written to. What was written once
//! stays as it was: nothing can be read at that end, and a socket cannot be opened by a name, as a pipe can in `/proc`.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, recvmsg, shutdown};

use crate::error::ToolError;

/// The number of the descriptor in the program: above those that programs are used to, and below every usual limit.
pub const REPORT_FD: RawFd = 200;
/// The most that is kept of one run, in bytes. What comes after is read, so that nobody waits, and forgotten.
const MAX_REPORT_LEN: usize = 128 << 20;
/// Descriptors that one message can bring (SCM_MAX_FD).
const MAX_DESCRIPTORS: usize = 253;

pub struct Report {
    reader: UnixStream,
    /// Kept open here as well: the report has no end while programs come and go.
    writer: UnixStream,
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Report {
    pub fn new() -> Result<Self, ToolError> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        shutdown(writer.as_raw_fd(), Shutdown::Read).map_err(std::io::Error::from)?;
        Ok(Report {
            reader,
            writer,
            bytes: Vec::new(),
            is_closed: false,
        })
    }

    /// The end for a program, which has it as [`REPORT_FD`].
    pub fn writer(&self) -> std::io::Result<OwnedFd> {
        Ok(self.writer.try_clone()?.into())
    }

    /// What has been written by now.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Becomes readable when there is something to read; `None` if there will be nothing more.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_closed).then(|| self.reader.as_fd())
    }

    /// Reads what is there.
    pub(super) fn read(&mut self) -> std::io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        // Not for ever: who writes without end must not keep the deadline from being seen.
        for _ in 0..64 {
            if self.is_closed {
                return Ok(());
            }
            match self.receive(&mut buffer) {
                Ok(n) => {
                    let room = MAX_REPORT_LEN.saturating_sub(self.bytes.len());
                    self.bytes.extend_from_slice(&buffer[..n.min(room)]);
                    if n < buffer.len() {
                        return Ok(());
                    }
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> nix::Result<usize> {
        let mut space = nix::cmsg_space!([RawFd; MAX_DESCRIPTORS]);
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let fd = self.reader.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut parts, Some(&mut space), flags)?;
        // A test may send descriptors or shut its end down. Descriptors stay open until the toolbox ends: to close a socket
        // of a test can take as long as the test likes. So they are taken once, and nothing is read afterwards.
        let brings_descriptors = message.cmsgs()?.next().is_some();
        self.is_closed = brings_descriptors || message.bytes == 0;
        Ok(message.bytes)
    }
}
