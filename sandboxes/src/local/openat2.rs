//! Safe access to files that sandboxed code may have written: never follows links, never blocks, never reads more than
//! requested.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::dir::{Dir, Entry};
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::Mode;

/// Opens a file or folder below a folder. No part of the path may be a link or lead out.
pub(super) fn open_beneath(folder: &OwnedFd, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(folder, path, how)?)
}

/// Opens a folder. The last part of the path may not be a link.
pub(super) fn open_folder(path: &Path) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(AT_FDCWD, path, flags, Mode::empty())
}

/// Lists an open folder, without `.` and `..`.
pub(super) fn entries(folder: OwnedFd) -> nix::Result<impl Iterator<Item = nix::Result<Entry>>> {
    let is_named = |entry: &nix::Result<Entry>| {
        let name = entry.as_ref().map(|entry| entry.file_name().to_bytes());
        !matches!(name, Ok(b"." | b".."))
    };
    Ok(Dir::from_fd(folder)?.into_iter().filter(is_named))
}

/// A folder in which paths are looked up.
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder. The last part of the path may not be a link.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(open_folder(path)?))
    }

    /// Returns the names in a folder; empty if the folder does not exist.
    pub(super) fn names(&self, path: &Path) -> Vec<OsString> {
        let listing =
            open_beneath(&self.0, path, OFlag::O_DIRECTORY).and_then(|folder| Ok(entries(folder)?));
        let names = listing.into_iter().flatten().flatten();
        names
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
            .collect()
    }

    /// Returns the text of a plain file of at most `longest` bytes.
    pub(super) fn text(&self, path: &Path, max_bytes: u64) -> Option<String> {
        let file = File::from(open_beneath(&self.0, path, OFlag::O_RDONLY).ok()?);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > max_bytes {
            return None;
        }
        let mut text = String::new();
        file.take(max_bytes).read_to_string(&mut text).ok()?;
        Some(text)
    }
}
