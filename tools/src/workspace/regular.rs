//! Reads only regular files of a workspace, up to a size limit and without blocking.
//!
//! Workspace files are untrusted: a program may have replaced them with a pipe, a device or an endless file.

use std::fs::{File, OpenOptions};
use std::io::{Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

/// The reason why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadReason {
    /// A folder, a pipe, a socket or a device.
    NotRegular,
    /// The file exceeds the limit; holds its size in bytes when it was opened.
    TooLarge(u64),
}

/// Reads a regular file of at most `max_bytes` bytes. Links are followed.
pub(super) fn read(
    path: &Path,
    max_bytes: u64,
) -> Result<std::result::Result<Vec<u8>, UnreadReason>> {
    contents(open(path, OFlag::empty()), max_bytes)
}

/// Reads a regular file like [`read`], but a link is an error.
pub(crate) fn read_itself(
    path: &Path,
    max_bytes: u64,
) -> Result<std::result::Result<Vec<u8>, UnreadReason>> {
    contents(open(path, OFlag::O_NOFOLLOW), max_bytes)
}

/// Opens a file for reading, without waiting for the other end of a pipe.
pub(crate) fn open_for_reading(path: &Path) -> Result<File> {
    open(path, OFlag::empty())
}

/// Opens a file without waiting for the other end of a pipe.
pub(super) fn open(path: &Path, flags: OFlag) -> Result<File> {
    let flags = flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
}

fn contents(
    file: Result<File>,
    max_bytes: u64,
) -> Result<std::result::Result<Vec<u8>, UnreadReason>> {
    let file = match file {
        // A socket, or a missing device.
        Err(e) if e.raw_os_error() == Some(Errno::ENXIO as i32) => {
            return Ok(Err(UnreadReason::NotRegular));
        }
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Err(UnreadReason::NotRegular));
    }
    if metadata.len() > max_bytes {
        return Ok(Err(UnreadReason::TooLarge(metadata.len())));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    // The file may grow while it is read.
    Ok(match length > max_bytes {
        true => Err(UnreadReason::TooLarge(length)),
        false => Ok(bytes),
    })
}

#[cfg(test)]
mod tests;
