//! Removes folders that jailed processes wrote: unwritable ones and ones deeper than any path, never through a link.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::openat2::entries;

/// Maximum depth of the recursion. Deeper folders are moved up first.
const MAX_DEPTH: usize = 48;

/// Removes a folder; a missing one is not an error.
pub(super) fn remove_tree(folder: &Path) -> io::Result<()> {
    let mut last = None;
    // Processes that were still running may have written more, which the next attempt removes.
    for _ in 0..3 {
        match attempt(folder) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::Other.into()))
}

fn attempt(folder: &Path) -> io::Result<()> {
    let top = open(AT_FDCWD, folder)?;
    let mut moved = 0;
    while empty(&top, &top, 0, &mut moved)? {}
    std::fs::remove_dir(folder)
}

/// Opens a folder, and nothing else, and makes it writable for this process.
fn open<P: ?Sized + nix::NixPath>(parent: impl std::os::fd::AsFd, name: &P) -> io::Result<OwnedFd> {
    let only_folders = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let place = openat(&parent, name, only_folders | OFlag::O_PATH, Mode::empty())?;
    // The descriptor is used because the name may now refer to another file.
    let by_descriptor = format!("/proc/self/fd/{}", place.as_raw_fd());
    let path = by_descriptor.as_str();
    let follow = FchmodatFlags::FollowSymlink;
    let _ = fchmodat(AT_FDCWD, path, Mode::S_IRWXU, follow);
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(openat(AT_FDCWD, path, flags, Mode::empty())?)
}

/// Removes the content of a folder. Returns true if it needs another pass, because something was moved into it.
fn empty(folder: &OwnedFd, top: &OwnedFd, depth: usize, moved: &mut u64) -> io::Result<bool> {
    let mut again = false;
    for name in names(folder)? {
        let name = name.as_c_str();
        match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(nix::Error::ENOENT) => continue,
            Err(nix::Error::EISDIR | nix::Error::EPERM) => {}
            Err(e) => return Err(e.into()),
        }
        let inner = open(folder, name)?;
        if depth < MAX_DEPTH {
            again |= empty(&inner, top, depth + 1, moved)?;
            unlinkat(folder, name, UnlinkatFlags::RemoveDir)?;
        } else {
            *moved += 1;
            let aside = format!(".removed-{}-{moved}", std::process::id());
            renameat(folder, name, top, aside.as_str())?;
            again = true;
        }
    }
    Ok(again)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let listing = entries(openat(folder, c".", flags, Mode::empty())?)?;
    let names = listing.map(|entry| Ok(entry?.file_name().to_owned()));
    Ok(names.collect::<nix::Result<_>>()?)
}
