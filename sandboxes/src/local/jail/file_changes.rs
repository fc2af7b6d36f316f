//! Changes of modes, owners, times and lengths, which the keeper makes only below the sandbox's own folders.
//!
//! The keeper first opens a path as the caller would, then checks where the opened file is. Exchanging links meanwhile
//! can change which file is opened, but not that it must be in a folder that the sandbox may write. Landlock refuses to
//! move or link files between folders, so no file of another folder can get there.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlink};
use nix::sys::stat::{FchmodatFlags, Mode, UtimensatFlags, fchmodat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat, truncate};

use super::super::protocol::Setup;
use super::caller::Caller;

/// Number of a call that is newer than libc's list. It is the same on every architecture.
const SYS_FCHMODAT2: i64 = 452;

pub(super) const CALLS: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
];

/// Folders that the sandbox may write, and the maximum length of files in them.
pub(super) struct OwnFolders {
    folders: Vec<PathBuf>,
    max_length: u64,
}

impl OwnFolders {
    pub(super) fn new(setup: &Setup) -> OwnFolders {
        let writable = setup.binds.iter().filter(|bind| bind.writable);
        OwnFolders {
            folders: writable.map(|bind| bind.host.clone()).collect(),
            max_length: setup.limits.file_size,
        }
    }

    fn check(&self, file: &OwnedFd) -> nix::Result<()> {
        let place = PathBuf::from(readlink(own_path(file).as_str())?);
        match self.folders.iter().any(|folder| place.starts_with(folder)) {
            true => Ok(()),
            false => Err(Errno::EPERM),
        }
    }
}

/// File that a call names.
enum Target {
    Descriptor(u64),
    Path { folder: u64, path: u64, flags: u64 },
}

enum Change {
    Mode(u64),
    Owner(u64, u64),
    Times(TimeSpec, TimeSpec),
    Length(u64),
}

pub(super) fn perform(
    folders: &OwnFolders,
    caller: &Caller<'_>,
    number: i64,
    arguments: [u64; 6],
) -> nix::Result<()> {
    let (target, change) = parse(caller, number, arguments)?;
    let file = open(caller, &target)?;
    folders.check(&file)?;
    caller.still_waits()?;
    match change {
        Change::Mode(mode) => {
            let mode = Mode::from_bits_truncate(mode as u32 & 0o7777);
            let follow = FchmodatFlags::FollowSymlink;
            fchmodat(AT_FDCWD, own_path(&file).as_str(), mode, follow)
        }
        Change::Owner(user, group) => {
            let id = |id: u64| Some(id as u32).filter(|id| *id != u32::MAX);
            let (user, group) = (id(user).map(Uid::from_raw), id(group).map(Gid::from_raw));
            fchownat(file.as_fd(), "", user, group, AtFlags::AT_EMPTY_PATH)
        }
        Change::Times(access, change) => {
            let follow = UtimensatFlags::FollowSymlink;
            utimensat(AT_FDCWD, own_path(&file).as_str(), &access, &change, follow)
        }
        // The kernel's limit on file sizes does not apply to the keeper.
        Change::Length(length) if length > folders.max_length => Err(Errno::EFBIG),
        Change::Length(length) => truncate(own_path(&file).as_str(), length as i64),
    }
}

fn parse(caller: &Caller<'_>, number: i64, arguments: [u64; 6]) -> nix::Result<(Target, Change)> {
    let [a, b, c, d, e, _] = arguments;
    let here = AT_FDCWD.as_raw_fd() as u64;
    let at = |folder, path, flags| Target::Path {
        folder,
        path,
        flags,
    };
    let either = |folder, path, flags| match path {
        0 => Target::Descriptor(folder),
        _ => at(folder, path, flags),
    };
    Ok(match number {
        libc::SYS_fchmod => (Target::Descriptor(a), Change::Mode(b)),
        libc::SYS_fchmodat => (at(a, b, 0), Change::Mode(c)),
        SYS_FCHMODAT2 => (at(a, b, d), Change::Mode(c)),
        libc::SYS_fchown => (Target::Descriptor(a), Change::Owner(b, c)),
        libc::SYS_fchownat => (at(a, b, e), Change::Owner(c, d)),
        libc::SYS_truncate => (at(here, a, 0), Change::Length(b)),
        libc::SYS_utimensat => (either(a, b, d), times(caller, c, nanoseconds)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (at(here, a, 0), Change::Mode(b)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (at(here, a, 0), Change::Owner(b, c)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (
            at(here, a, libc::AT_SYMLINK_NOFOLLOW as u64),
            Change::Owner(b, c),
        ),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (either(a, b, 0), times(caller, c, microseconds)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => (at(here, a, 0), times(caller, b, microseconds)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (at(here, a, 0), times(caller, b, seconds)?),
        _ => return Err(Errno::ENOSYS),
    })
}

/// Reads numbers of eight bytes from the caller's memory.
fn numbers<const N: usize>(caller: &Caller<'_>, address: u64) -> nix::Result<[i64; N]> {
    let mut numbers = [0; N];
    for (offset, number) in (0..).step_by(8).zip(&mut numbers) {
        *number = i64::from_ne_bytes(caller.bytes(address.wrapping_add(offset))?);
    }
    Ok(numbers)
}

/// Times of access and change, each in seconds and nanoseconds.
type Times = [(i64, i64); 2];

/// Returns the change of times that `read` finds in the caller's memory. Without an address, both times are now.
fn times(
    caller: &Caller<'_>,
    address: u64,
    read: fn(&Caller<'_>, u64) -> nix::Result<Times>,
) -> nix::Result<Change> {
    let [access, change] = match address {
        0 => [TimeSpec::UTIME_NOW; 2],
        _ => read(caller, address)?.map(|(seconds, rest)| TimeSpec::new(seconds, rest)),
    };
    Ok(Change::Times(access, change))
}

fn nanoseconds(caller: &Caller<'_>, address: u64) -> nix::Result<Times> {
    let [access, access_rest, change, change_rest] = numbers(caller, address)?;
    Ok([(access, access_rest), (change, change_rest)])
}

#[cfg(target_arch = "x86_64")]
fn microseconds(caller: &Caller<'_>, address: u64) -> nix::Result<Times> {
    let times = nanoseconds(caller, address)?;
    match times.iter().all(|(_, rest)| (0..1_000_000).contains(rest)) {
        true => Ok(times.map(|(seconds, rest)| (seconds, rest * 1000))),
        false => Err(Errno::EINVAL),
    }
}

#[cfg(target_arch = "x86_64")]
fn seconds(caller: &Caller<'_>, address: u64) -> nix::Result<Times> {
    Ok(numbers(caller, address)?.map(|seconds| (seconds, 0)))
}

/// Opens the file that the caller names, without rights to read or write it.
fn open(caller: &Caller<'_>, target: &Target) -> nix::Result<OwnedFd> {
    let plain = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let descriptor = |number: u64| {
        let path = match number as i32 {
            libc::AT_FDCWD => format!("{}/cwd", caller.folder()),
            number => format!("{}/fd/{number}", caller.folder()),
        };
        openat(AT_FDCWD, path.as_str(), plain, Mode::empty()).map_err(|error| match error {
            Errno::ENOENT => Errno::EBADF,
            // The kernel hides the caller.
            _ => Errno::EPERM,
        })
    };
    match *target {
        Target::Descriptor(number) => descriptor(number),
        Target::Path {
            folder,
            path,
            flags,
        } => {
            let has = |flag: i32| flags as i32 & flag != 0;
            let text = caller.path(path)?;
            if text.is_empty() {
                return match has(libc::AT_EMPTY_PATH) {
                    true => descriptor(folder),
                    false => Err(Errno::ENOENT),
                };
            }
            let path = seen_from_here(caller, text);
            let how = match has(libc::AT_SYMLINK_NOFOLLOW) {
                true => plain | OFlag::O_NOFOLLOW,
                false => plain,
            };
            if path.is_absolute() {
                return openat(AT_FDCWD, &path, how, Mode::empty());
            }
            openat(descriptor(folder)?, &path, how, Mode::empty())
        }
    }
}

/// Translates a path of the caller: `/proc/self`, by which C libraries name descriptors, is the caller and not the
/// keeper.
fn seen_from_here(caller: &Caller<'_>, path: Vec<u8>) -> PathBuf {
    let path = PathBuf::from(OsString::from_vec(path));
    for own in ["/proc/self", "/proc/thread-self"] {
        if let Ok(rest) = path.strip_prefix(own) {
            return PathBuf::from(caller.folder()).join(rest);
        }
    }
    path
}

fn own_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
