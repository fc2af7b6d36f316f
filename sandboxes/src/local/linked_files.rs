//! Files of the host that all sandboxes share read-only. Each version is copied into the cache once, and linked into
//! sandboxes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::program_writer::{self, Content};
use super::state_store::{Cache, with_context};
use crate::mutex::lock;
use crate::sandbox::Result;

/// Permission bit of readable files. The user inside must be able to read a linked file, which belongs to this
/// process's user.
const OTHERS_READ: u32 = 0o004;

/// Lock file, held while a process looks for a copy, creates one or removes unused ones.
const LOCK: &str = "lock";

/// Copies that this process uses, by the version of the copied file.
#[derive(Default)]
pub(super) struct LinkedFiles(Mutex<HashMap<String, Copy>>);

struct Copy {
    path: PathBuf,
    /// Shared lock, so that other processes do not remove the copy.
    _in_use: File,
}

impl LinkedFiles {
    /// Makes `target`, which may exist, a hard link to the copy of `from`. Returns false if files with this mode cannot
    /// be shared.
    pub(super) fn link(
        &self,
        cache: &Cache,
        launcher: &[OsString],
        from: &Path,
        mode: u32,
        target: &Path,
    ) -> Result<bool> {
        if mode & OTHERS_READ == 0 {
            return Ok(false);
        }
        let copy = self.copy(cache, launcher, from, mode & 0o7777)?;
        let (source, existing) = (fs::metadata(&copy)?, fs::symlink_metadata(target));
        match existing {
            Ok(metadata) if metadata.ino() == source.ino() && metadata.dev() == source.dev() => {
                return Ok(true);
            }
            Ok(_) => fs::remove_file(target).map_err(with_context("replace", target))?,
            Err(_) => {}
        }
        fs::hard_link(&copy, target).map_err(with_context("link", target))?;
        Ok(true)
    }

    fn copy(
        &self,
        cache: &Cache,
        launcher: &[OsString],
        from: &Path,
        mode: u32,
    ) -> Result<PathBuf> {
        let source = File::open(from).map_err(with_context("open", from))?;
        let metadata = source.metadata()?;
        let version = version(&metadata, mode);
        let mut copies = lock(&self.0);
        if let Some(copy) = copies.get(&version).filter(|copy| copy.path.exists()) {
            return Ok(copy.path.clone());
        }
        let folder = cache.programs();
        let turn = File::create(folder.join(LOCK)).map_err(with_context("lock", &folder))?;
        turn.lock()?;
        let path = folder.join(&version);
        // After a machine crash, a file can be shorter than what was written.
        if !fs::metadata(&path).is_ok_and(|copy| copy.len() == metadata.len()) {
            let aside = folder.join(format!("{version}.new"));
            let _ = fs::remove_file(&aside);
            program_writer::write(launcher, &aside, Content::File(source), mode)
                .and_then(|()| fs::rename(&aside, &path))
                .map_err(with_context("copy", from))?;
        }
        let in_use = File::open(&path)?;
        in_use.lock_shared()?;
        remove_unused(&folder, &version);
        let copy = Copy {
            path: path.clone(),
            _in_use: in_use,
        };
        copies.insert(version, copy);
        Ok(path)
    }
}

/// Returns a name for a file's present content; it changes if the file is written or replaced.
fn version(metadata: &fs::Metadata, mode: u32) -> String {
    format!(
        "{:x}-{:x}-{:x}-{:x}.{:x}-{:x}.{:x}-{mode:o}",
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

/// Removes copies of other versions that no process uses.
fn remove_unused(folder: &Path, version: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name != LOCK
            && name != version
            && File::open(entry.path()).is_ok_and(|copy| copy.try_lock().is_ok())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
