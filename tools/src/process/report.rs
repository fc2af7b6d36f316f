//! The channel for reports of a test run: a socket pair whose writing end goes to the program. Written data cannot be
//! changed: that end cannot be read, and unlike a pipe, a socket cannot be opened through `/proc`.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, recvmsg, shutdown};

use crate::error::Result;

/// Descriptor number in the program: above the numbers that programs usually use, and below every usual limit.
pub const REPORT_FD: RawFd = 200;
/// Maximum bytes kept of one run. Later bytes are still read, so that writers do not block, and discarded.
const MAX_REPORT_LEN: usize = 128 << 20;
/// Maximum number of descriptors in one message (SCM_MAX_FD).
const MAX_DESCRIPTORS: usize = 253;

/// A channel for the report of a test run, and the data that was read from it.
pub struct ProcessReport {
    reader: UnixStream,
    /// Kept open here too, so that the report does not end while programs come and go.
    writer: UnixStream,
    bytes: Vec<u8>,
    is_closed: bool,
}

impl ProcessReport {
    /// Creates a socket pair for a report.
    ///
    /// # Errors
    ///
    /// Fails if the sockets cannot be created.
    pub fn new() -> Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        shutdown(writer.as_raw_fd(), Shutdown::Read).map_err(std::io::Error::from)?;
        Ok(ProcessReport {
            reader,
            writer,
            bytes: Vec::new(),
            is_closed: false,
        })
    }

    /// Returns the program's end, which becomes [`REPORT_FD`] there.
    ///
    /// # Errors
    ///
    /// Fails if the descriptor cannot be duplicated.
    pub fn writer(&self) -> std::io::Result<OwnedFd> {
        Ok(self.writer.try_clone()?.into())
    }

    /// Returns everything that has been read so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the descriptor to poll for reading; `None` if the report has ended.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_closed).then(|| self.reader.as_fd())
    }

    /// Reads the available data.
    pub(super) fn read(&mut self) -> std::io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        // Bounded, so that an endless writer cannot keep the deadline from being noticed.
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
        // A test may send descriptors or shut its end down. Closing a test's socket can take as long as the test likes,
        // so received descriptors stay open until the toolbox ends. For that reason they are accepted once, and nothing
        // is read afterwards.
        let brings_descriptors = message.cmsgs()?.next().is_some();
        self.is_closed = brings_descriptors || message.bytes == 0;
        Ok(message.bytes)
    }
}
