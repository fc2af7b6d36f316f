//! Copies folders that jailed processes may have written, or may still be writing. Links are never followed.
//!
//! Modes and times are preserved, so compiled Python files stay valid. A file with several names stays one file, so a
//! copy takes no more space than the original.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use nix::dir::Type;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{
    FileStat, Mode, SFlag, UtimensatFlags, fchmod, fstat, fstatat, futimens, mkdirat, mknodat,
    utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, Whence, fchown, fchownat, getegid, geteuid, linkat, lseek, symlinkat};

use super::file_equality::has_equal_file;
use super::openat2::{entries, open_beneath, open_folder};
use crate::mutex::lock;

/// Set-user-id and set-group-id bits, which no copy keeps.
pub(super) const SETID_BITS: u32 = 0o6000;

/// Path of the top folder from itself.
const TOP: &str = ".";

/// Treatment of plain files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyMode<'a> {
    Copy,
    /// Create hard links, for files that are never written again.
    Link,
    /// Copy, but create a hard link if this folder has an equal file at the same path. Neither its files nor the new
    /// ones may be written again.
    CopyOrLink(&'a Path),
}

/// Copies the folder `from` to `to`, which must not exist. The copies belong to `owner` (needs root).
pub(super) fn copy_tree(
    from: &Path,
    to: &Path,
    files: CopyMode<'_>,
    owner: Option<u32>,
) -> io::Result<()> {
    fs::create_dir(to)?;
    let copy = TreeCopy::run(from, to, files, owner, None)?;
    copy_opaque(&copy.from, &copy.to)?;
    copy.finish(&copy.to, &fstat(&copy.from)?)
}

/// Copies the entries of the folder `from` to the folder `to`, which has none of them. Leaves out the entry `except`.
pub(super) fn copy_entries(
    from: &Path,
    to: &Path,
    files: CopyMode<'_>,
    owner: Option<u32>,
    except: Option<&str>,
) -> io::Result<()> {
    TreeCopy::run(from, to, files, owner, except).map(drop)
}

struct TreeCopy<'a> {
    from: OwnedFd,
    to: OwnedFd,
    /// Name of an entry of the top folder that is left out.
    except: Option<&'a str>,
    link: bool,
    /// Folder whose files are linked if they are equal.
    model: Option<OwnedFd>,
    owner: Option<u32>,
    /// Copies of files with several names, by device and inode of the original.
    copied: Mutex<HashMap<(u64, u64), CopiedFile>>,
    state: Mutex<CopyQueue>,
    changed: Condvar,
}

/// A file below the target folder.
struct CopiedFile {
    folder: Arc<Path>,
    name: CString,
}

/// A folder in all trees.
struct FolderHandles {
    relative: Arc<Path>,
    from: OwnedFd,
    to: OwnedFd,
    model: Option<OwnedFd>,
}

struct CopyQueue {
    waiting: VecDeque<PathBuf>,
    busy: usize,
    failure: Option<io::Error>,
}

impl<'a> TreeCopy<'a> {
    fn run(
        from: &Path,
        to: &Path,
        files: CopyMode<'_>,
        owner: Option<u32>,
        except: Option<&'a str>,
    ) -> io::Result<TreeCopy<'a>> {
        let copy = TreeCopy {
            from: open_folder(from)?,
            to: open_folder(to)?,
            except,
            link: files == CopyMode::Link,
            // If the folder does not exist, nothing can be shared.
            model: match files {
                CopyMode::CopyOrLink(model) => open_folder(model).ok(),
                CopyMode::Copy | CopyMode::Link => None,
            },
            owner,
            copied: Mutex::default(),
            state: Mutex::new(CopyQueue {
                waiting: VecDeque::from([PathBuf::from(TOP)]),
                busy: 0,
                failure: None,
            }),
            changed: Condvar::new(),
        };
        let workers = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| copy.run_worker());
            }
        });
        let failure = lock(&copy.state).failure.take();
        failure.map_or(Ok(copy), Err)
    }

    fn run_worker(&self) {
        let mut state = lock(&self.state);
        loop {
            if state.failure.is_some() || (state.waiting.is_empty() && state.busy == 0) {
                self.changed.notify_all();
                return;
            }
            let Some(folder) = state.waiting.pop_back() else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.busy += 1;
            drop(state);
            let result = self.folder(&folder);
            state = lock(&self.state);
            state.busy -= 1;
            match result {
                Ok(folders) => state.waiting.extend(folders),
                Err(e) => {
                    let text = format!("copy {}: {e}", shortened(&folder));
                    state.failure.get_or_insert(io::Error::new(e.kind(), text));
                }
            }
            self.changed.notify_all();
        }
    }

    /// Copies the entries of one folder. Returns the subfolders, which exist in the copy but are still empty.
    fn folder(&self, relative: &Path) -> io::Result<Vec<PathBuf>> {
        let model = self.model.as_ref();
        let folder = FolderHandles {
            relative: Arc::from(relative),
            from: open_beneath(&self.from, relative, OFlag::O_DIRECTORY)?,
            to: open_beneath(&self.to, relative, OFlag::O_DIRECTORY)?,
            model: model.and_then(|model| open_beneath(model, relative, OFlag::O_DIRECTORY).ok()),
        };
        let FolderHandles { from, to, .. } = &folder;
        let is_top = relative == Path::new(TOP);
        let except = self.except.filter(|_| is_top).map(str::as_bytes);
        let mut folders = Vec::new();
        for entry in entries(from.try_clone()?)? {
            let entry = entry?;
            let name = entry.file_name();
            if except == Some(name.to_bytes()) {
                continue;
            }
            let kind = match entry.file_type() {
                Some(kind) => kind,
                None => kind_of(&fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?),
            };
            match kind {
                Type::Directory => {
                    mkdirat(to, name, Mode::S_IRWXU)?;
                    folders.push(relative.join(os_name(name)));
                }
                Type::File if self.link => {
                    linkat(from, name, to, name, AtFlags::empty())?;
                }
                Type::File => self.file(&folder, name).map_err(|e| named(name, e))?,
                Type::Symlink => self.link(from, to, name)?,
                // This device marks a deleted file of an overlay's lower layer.
                Type::CharacterDevice => {
                    let stat = fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
                    if stat.st_rdev == 0 {
                        mknodat(to, name, SFlag::S_IFCHR, Mode::empty(), 0)?;
                    }
                }
                // Sockets and pipes belong to processes, which are not copied.
                _ => {}
            }
        }
        if !is_top {
            copy_opaque(from, to)?;
            self.finish(to, &fstat(from)?)?;
        }
        Ok(folders)
    }

    fn file(&self, folder: &FolderHandles, name: &CStr) -> io::Result<()> {
        let read = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut source = match openat(&folder.from, name, read, Mode::empty()) {
            Ok(file) => File::from(file),
            // The file was removed or replaced meanwhile.
            Err(nix::Error::ENOENT | nix::Error::ELOOP) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let stat = fstat(&source)?;
        let has_other_names = stat.st_nlink > 1;
        if has_other_names && self.link_to_copy(&lock(&self.copied), folder, name, &stat)? {
            return Ok(());
        }
        let model = match &folder.model {
            Some(model) => {
                let owner = self.owner_of_copies();
                has_equal_file(model, name, &source, &stat, owner)?.then_some(model)
            }
            None => None,
        };
        let mut copied = has_other_names.then(|| lock(&self.copied));
        if let Some(copied) = &mut copied {
            // Another thread may have copied it under another name meanwhile.
            if self.link_to_copy(copied, folder, name, &stat)? {
                return Ok(());
            }
            let place = CopiedFile {
                folder: folder.relative.clone(),
                name: name.to_owned(),
            };
            copied.insert((stat.st_dev, stat.st_ino), place);
        }
        if let Some(model) = model {
            match link(model, name, &folder.to, name) {
                Ok(true) => return Ok(()),
                // Some file systems do not support hard links.
                Ok(false) | Err(nix::Error::EPERM | nix::Error::EXDEV) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let write = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let mut target = File::from(openat(&folder.to, name, write, mode)?);
        // From here on, other threads can link to the copy.
        drop(copied);
        source.rewind()?;
        let sparse = stat.st_blocks.saturating_mul(512) < stat.st_size;
        match sparse {
            true => copy_parts(&mut source, &mut target, stat.st_size)?,
            false => io::copy(&mut source, &mut target).map(drop)?,
        }
        self.finish(&target, &stat)
    }

    /// Links a further name of a file that was copied already to the copy. Returns false if that is not possible.
    fn link_to_copy(
        &self,
        copied: &HashMap<(u64, u64), CopiedFile>,
        folder: &FolderHandles,
        name: &CStr,
        stat: &FileStat,
    ) -> io::Result<bool> {
        let Some(copy) = copied.get(&(stat.st_dev, stat.st_ino)) else {
            return Ok(false);
        };
        let place = open_beneath(&self.to, &copy.folder, OFlag::O_DIRECTORY)?;
        Ok(link(&place, &copy.name, &folder.to, name)?)
    }

    fn link(&self, from: &OwnedFd, to: &OwnedFd, name: &CStr) -> io::Result<()> {
        let target = readlinkat(from, name)?;
        symlinkat(target.as_os_str(), to, name)?;
        if let Some(owner) = self.owner {
            let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
            fchownat(
                to,
                name,
                Some(user),
                Some(group),
                AtFlags::AT_SYMLINK_NOFOLLOW,
            )?;
        }
        let stat = fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let (access, change) = times(&stat);
        utimensat(to, name, &access, &change, UtimensatFlags::NoFollowSymlink)?;
        Ok(())
    }

    fn owner_of_copies(&self) -> (u32, u32) {
        match self.owner {
            Some(owner) => (owner, owner),
            None => (geteuid().as_raw(), getegid().as_raw()),
        }
    }

    fn finish(&self, target: &impl AsFd, like: &FileStat) -> io::Result<()> {
        if let Some(owner) = self.owner {
            fchown(
                target,
                Some(Uid::from_raw(owner)),
                Some(Gid::from_raw(owner)),
            )?;
        }
        fchmod(
            target,
            Mode::from_bits_truncate(like.st_mode & 0o7777 & !SETID_BITS),
        )?;
        let (access, change) = times(like);
        futimens(target, &access, &change)?;
        Ok(())
    }
}

/// Creates a hard link. Returns false if the file has the maximum number of names.
fn link(from: &OwnedFd, name: &CStr, to: &OwnedFd, other: &CStr) -> nix::Result<bool> {
    match linkat(from, name, to, other, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(nix::Error::EMLINK) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Copies the written parts of a sparse file. Holes stay holes.
fn copy_parts(source: &mut File, target: &mut File, size: i64) -> io::Result<()> {
    let mut at = 0;
    while at < size {
        let (start, end) = match lseek(&*source, at, Whence::SeekData) {
            Ok(start) => (start, lseek(&*source, start, Whence::SeekHole)?.min(size)),
            // The rest of the file is a hole.
            Err(nix::Error::ENXIO) => break,
            // This file system does not report holes.
            Err(_) => (at, size),
        };
        lseek(&*source, start, Whence::SeekSet)?;
        lseek(&*target, start, Whence::SeekSet)?;
        let length = u64::try_from(end - start).unwrap_or(0);
        let copied = io::copy(&mut source.by_ref().take(length), target)?;
        if copied < length {
            // The file was truncated meanwhile.
            break;
        }
        at = end;
    }
    target.set_len(u64::try_from(size).unwrap_or(0))
}

/// Copies an overlay's mark that a folder hides the one below it.
fn copy_opaque(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    const NAME: &CStr = c"user.overlay.opaque";
    let mut value = [0u8; 8];
    // SAFETY: the name is a C string and the buffer has the length that is given.
    let length = unsafe {
        libc::fgetxattr(
            from.as_raw_fd(),
            NAME.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    };
    let Ok(length) = usize::try_from(length) else {
        return Ok(());
    };
    // SAFETY: as above; no more than `length` bytes are read.
    let result = unsafe {
        libc::fsetxattr(
            to.as_raw_fd(),
            NAME.as_ptr(),
            value.as_ptr().cast(),
            length,
            0,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Shortens a path for messages.
fn shortened(path: &Path) -> String {
    let text = path.display().to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

fn named(name: &CStr, e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", name.to_string_lossy()))
}

fn os_name(name: &CStr) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes())
}

fn kind_of(stat: &FileStat) -> Type {
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFDIR => Type::Directory,
        SFlag::S_IFREG => Type::File,
        SFlag::S_IFLNK => Type::Symlink,
        _ => Type::Fifo,
    }
}

fn times(stat: &FileStat) -> (TimeSpec, TimeSpec) {
    (
        TimeSpec::new(stat.st_atime, stat.st_atime_nsec),
        TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec),
    )
}

#[cfg(test)]
mod tests;
