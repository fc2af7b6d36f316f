//! A thread whose system call was passed to the keeper, and access to its memory.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;

/// Maximum path length that the kernel accepts, including the zero byte.
const MAX_PATH: usize = 4096;

/// A thread that waits for the result of its call. If the kernel hides the thread (it made itself undumpable, or
/// belongs to another user), the call is refused.
pub(super) struct Caller<'a> {
    pub listener: &'a OwnedFd,
    pub id: u64,
    pub thread: u32,
}

impl Caller<'_> {
    /// Returns the thread's folder in /proc.
    pub(super) fn folder(&self) -> String {
        format!("/proc/{}", self.thread)
    }

    /// Checks that the thread still waits. Otherwise its number, and files opened through it, may belong to another
    /// process.
    pub(super) fn still_waits(&self) -> nix::Result<()> {
        let mut id = self.id;
        control(self.listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id)
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> nix::Result<usize> {
        let memory = File::open(format!("{}/mem", self.folder())).map_err(|_| Errno::EPERM)?;
        self.still_waits()?;
        memory.read_at(buffer, address).map_err(|_| Errno::EFAULT)
    }

    pub(super) fn bytes<const N: usize>(&self, address: u64) -> nix::Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.read(address, &mut bytes)? {
            read if read == N => Ok(bytes),
            _ => Err(Errno::EFAULT),
        }
    }

    /// Reads a string that ends with a zero byte.
    pub(super) fn path(&self, address: u64) -> nix::Result<Vec<u8>> {
        let mut text = vec![0; MAX_PATH];
        let read = self.read(address, &mut text)?;
        text.truncate(read);
        let end = text.iter().position(|byte| *byte == 0);
        let end = end.ok_or(match read {
            MAX_PATH => Errno::ENAMETOOLONG,
            _ => Errno::EFAULT,
        })?;
        text.truncate(end);
        Ok(text)
    }

    /// Returns the status flags of one of the thread's sockets.
    pub(super) fn flags(&self, socket: i32) -> nix::Result<i32> {
        let folder = self.folder();
        let opened = fs::read_link(format!("{folder}/fd/{socket}")).map_err(|_| Errno::EBADF)?;
        if !opened.to_string_lossy().starts_with("socket:") {
            return Err(Errno::ENOTSOCK);
        }
        let info = fs::read_to_string(format!("{folder}/fdinfo/{socket}"));
        let info = info.map_err(|_| Errno::EBADF)?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags
            .and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok())
            .ok_or(Errno::EBADF)
    }
}

/// Sends an ioctl request of seccomp user notification.
pub(super) fn control<T>(
    listener: &OwnedFd,
    request: libc::Ioctl,
    argument: &mut T,
) -> nix::Result<()> {
    // SAFETY: every caller passes the structure that the request is defined for, and it outlives the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, argument) };
    Errno::result(result).map(drop)
}
