//! Checks whether a file equals the one in another folder, so that a link can replace a copy.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

/// Bytes that are compared at once.
const BLOCK_LEN: u64 = 1 << 16;

/// Returns whether `folder` has a plain file with this name that equals a copy of `source`: same size, time, mode and
/// bytes, and owned by `owner`. Reads `source` from its beginning.
pub(super) fn has_equal_file(
    folder: &OwnedFd,
    name: &CStr,
    source: &File,
    like: &FileStat,
    owner: (u32, u32),
) -> io::Result<bool> {
    let read = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    // A file that cannot be opened counts as different, which costs only a copy.
    let Ok(there) = openat(folder, name, read, Mode::empty()) else {
        return Ok(false);
    };
    let there = File::from(there);
    let existing = fstat(&there)?;
    let plain = |stat: &FileStat| stat.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits();
    let same = plain(&existing)
        && plain(like)
        && existing.st_size == like.st_size
        && (existing.st_mtime, existing.st_mtime_nsec) == (like.st_mtime, like.st_mtime_nsec)
        && existing.st_mode & 0o7777 == like.st_mode & 0o7777
        && (existing.st_uid, existing.st_gid) == owner;
    Ok(same && same_bytes(source, &there)?)
}

fn same_bytes(one: &File, other: &File) -> io::Result<bool> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        for (file, block) in [(one, &mut left), (other, &mut right)] {
            block.clear();
            file.take(BLOCK_LEN).read_to_end(block)?;
        }
        if left != right {
            return Ok(false);
        }
        if (left.len() as u64) < BLOCK_LEN {
            return Ok(true);
        }
    }
}
