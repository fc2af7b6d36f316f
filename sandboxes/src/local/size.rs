//! Measures the disk usage of a folder, without following links. Works at any depth, and while others write there.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, SFlag, fstatat};
use nix::sys::statvfs::statvfs;

use super::openat2::{entries, open_beneath, open_folder};
use crate::sandbox::Limits;

/// Length from which a path is looked up from a folder on the way: the kernel accepts at most 4096 bytes.
const MAX_RELATIVE_LEN: usize = 2000;

/// Factor for the limits while an environment is built.
const BUILD_FACTOR: u64 = 4;

/// Disk usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiskUsage {
    pub bytes: u64,
    /// Number of files, folders and links.
    pub files: u64,
    /// Whether there are more files, which could not be read.
    pub is_hidden: bool,
}

impl DiskUsage {
    /// Returns the usage that the limits allow.
    pub(crate) fn allowed(limits: &Limits, is_build: bool) -> DiskUsage {
        let factor = if is_build { BUILD_FACTOR } else { 1 };
        DiskUsage {
            bytes: limits.disk.saturating_mul(factor),
            files: limits.files.saturating_mul(factor),
            is_hidden: false,
        }
    }

    /// Returns why a sandbox with this usage must end, if it exceeds the limit.
    pub(crate) fn excess(self, limit: DiskUsage) -> Option<String> {
        if self.bytes > limit.bytes {
            return Some(format!(
                "its files take {} MiB on disk, more than the limit of {} MiB (limits.disk)",
                self.bytes >> 20,
                limit.bytes >> 20
            ));
        }
        (self.files > limit.files).then(|| {
            format!(
                "it created {} files and folders, more than the limit of {} (limits.files)",
                self.files, limit.files
            )
        })
    }

    /// Returns the usage beyond that of `other`.
    pub(crate) fn beyond(self, other: DiskUsage) -> DiskUsage {
        DiskUsage {
            bytes: self.bytes.saturating_sub(other.bytes),
            files: self.files.saturating_sub(other.files),
            is_hidden: self.is_hidden,
        }
    }
}

/// A file system, with the usage of all its users.
pub(crate) struct FileSystem {
    pub used: DiskUsage,
    /// Whether the file system reports a number of files; btrfs does not.
    pub counts_files: bool,
    /// Bytes that this user can still write.
    pub free: u64,
}

impl FileSystem {
    pub(crate) fn from_folder(folder: &Path) -> Option<FileSystem> {
        let stats = statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stats.fragment_size());
        Some(FileSystem {
            used: DiskUsage {
                bytes: bytes(stats.blocks().saturating_sub(stats.blocks_free())),
                files: stats.files().saturating_sub(stats.files_free()),
                is_hidden: false,
            },
            counts_files: stats.files() > 0,
            free: bytes(stats.blocks_available()),
        })
    }
}

/// Measures everything below a folder. Unreadable folders are not counted, nor are files that were removed or renamed
/// meanwhile.
pub(crate) fn disk_usage(folder: &Path) -> DiskUsage {
    let (mut sum, mut seen) = (DiskUsage::default(), BTreeSet::new());
    let mut is_hidden = false;
    let walked = walk(
        folder,
        |_, stat| {
            if stat.st_nlink <= 1 || is_folder(stat) || seen.insert((stat.st_dev, stat.st_ino)) {
                sum.bytes += bytes(stat);
            }
            sum.files += 1;
            Ok(())
        },
        |_| {
            is_hidden = true;
            Ok(())
        },
    );
    sum.is_hidden = is_hidden || walked.is_err_and(|e| e.kind() != io::ErrorKind::NotFound);
    sum
}

/// Returns the bytes of everything below a folder; a file with several names counts once. Unreadable files are skipped.
/// Blocks.
///
/// It works without `openat2`, which kernels before 5.6 and some containers lack, because the limit on clones must hold
/// there too.
pub fn disk_bytes(folder: &Path) -> u64 {
    let (mut bytes, mut seen) = (0, BTreeSet::new());
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(stat) = entry.metadata() else {
                continue;
            };
            if stat.is_dir() {
                folders.push(entry.path());
            }
            if stat.nlink() < 2 || stat.is_dir() || seen.insert((stat.dev(), stat.ino())) {
                bytes += stat.blocks() * 512;
            }
        }
    }
    bytes
}

/// Returns the bytes of files and folders, without files that `shared` has at the same path (the same file, not a
/// copy). A file with several names counts once.
pub(super) fn own_bytes(folder: &Path, shared: Option<&Path>) -> io::Result<u64> {
    let (mut sum, mut seen) = (0, BTreeSet::new());
    let count = |path: &Path, stat: &FileStat| {
        if stat.st_nlink > 1 && !is_folder(stat) {
            let file = (stat.st_dev, stat.st_ino);
            let there = shared.and_then(|shared| fs::symlink_metadata(shared.join(path)).ok());
            let is_shared = there.is_some_and(|there| (there.dev(), there.ino()) == file);
            if is_shared || !seen.insert(file) {
                return Ok(());
            }
        }
        sum += bytes(stat);
        Ok(())
    };
    walk(folder, count, Err)?;
    Ok(sum)
}

fn bytes(stat: &FileStat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0) * 512
}

fn is_folder(stat: &FileStat) -> bool {
    stat.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits()
}

/// A folder to visit: its path from an open folder, and its whole path if that is short.
struct PendingFolder {
    from: Rc<OwnedFd>,
    place: PathBuf,
    path: PathBuf,
}

fn walk(
    folder: &Path,
    mut visit: impl FnMut(&Path, &FileStat) -> io::Result<()>,
    mut failed: impl FnMut(io::Error) -> io::Result<()>,
) -> io::Result<()> {
    let mut waiting = vec![PendingFolder {
        from: Rc::new(open_folder(folder)?),
        place: PathBuf::from("."),
        path: PathBuf::new(),
    }];
    while let Some(next) = waiting.pop() {
        if let Err(e) = visit_folder(next, &mut waiting, &mut visit) {
            failed(e)?;
        }
    }
    Ok(())
}

fn visit_folder(
    next: PendingFolder,
    waiting: &mut Vec<PendingFolder>,
    visit: &mut impl FnMut(&Path, &FileStat) -> io::Result<()>,
) -> io::Result<()> {
    let here = Rc::new(open_beneath(&next.from, &next.place, OFlag::O_DIRECTORY)?);
    let is_far = next.place.as_os_str().len() > MAX_RELATIVE_LEN;
    for entry in entries(here.try_clone()?)? {
        let entry = entry?;
        let name = entry.file_name();
        let stat = match fstatat(&*here, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(nix::Error::ENOENT) => continue,
            Err(e) => return Err(e.into()),
        };
        let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        // Paths beyond the limit are never shared, so this path is never looked up.
        let path = match next.path.as_os_str().len() > MAX_RELATIVE_LEN {
            true => PathBuf::from("/"),
            false => next.path.join(name),
        };
        visit(&path, &stat)?;
        if is_folder(&stat) {
            let (from, place) = match is_far {
                true => (here.clone(), name.to_owned()),
                false => (next.from.clone(), next.place.join(name)),
            };
            waiting.push(PendingFolder { from, place, path });
        }
    }
    Ok(())
}
