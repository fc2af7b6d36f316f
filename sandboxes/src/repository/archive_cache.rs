//! Archives in the cache. If they exceed the limit, the least recently used ones are removed, except those in use.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::Source;
use crate::sandbox::Result;

/// Period after a use in which an archive always stays, because it may soon be used again.
const MIN_IDLE: Duration = Duration::from_secs(3600);

/// A lock on an archive. The archive is not removed while the lease or a clone of it exists.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveLease {
    _file: Arc<File>,
}

/// All leases are equal, so that they do not affect whether two sources are equal.
impl PartialEq for ArchiveLease {
    fn eq(&self, _: &ArchiveLease) -> bool {
        true
    }
}

/// Takes a lease on an archive and marks it as used now. Returns `None` if it does not exist.
pub(super) fn acquire_lease(archive: &Path) -> Result<Option<ArchiveLease>> {
    let file = match File::open(archive) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    file.lock_shared()?;
    // The archive may have been removed before it was locked.
    let (current, held) = (std::fs::metadata(archive), file.metadata()?);
    if current.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (held.dev(), held.ino())) {
        // Another user's file cannot be touched, and the time of use is only a hint.
        let _ = file.set_modified(SystemTime::now());
        return Ok(Some(ArchiveLease {
            _file: Arc::new(file),
        }));
    }
    Ok(None)
}

/// Stores a complete archive, which other users may read too.
pub(super) fn store(file: NamedTempFile, archive: &Path) -> Result<Option<ArchiveLease>> {
    file.as_file().sync_data()?;
    file.as_file()
        .set_permissions(Permissions::from_mode(0o644))?;
    file.persist(archive).map_err(|e| e.error)?;
    acquire_lease(archive)
}

/// Removes the least recently used archives, with their notes, until the rest take at most `max_bytes` bytes. Blocks.
pub(crate) fn evict_archives(cache: &Path, max_bytes: u64) -> Result<()> {
    let folder = cache.join("sources");
    let mut archives = Vec::new();
    for path in with_ending(&folder, "tar")? {
        if let Ok(metadata) = std::fs::metadata(&path) {
            archives.push((metadata.modified()?, metadata.blocks() * 512, path));
        }
    }
    if !evict(archives, max_bytes, remove)? {
        return Ok(());
    }
    for record in with_ending(&folder, "json")? {
        let text = std::fs::read(&record).unwrap_or_default();
        let recorded_source = serde_json::from_slice::<Source>(&text);
        if recorded_source.is_ok_and(|source| !source.archive.exists()) {
            removed(std::fs::remove_file(&record))?;
        }
    }
    Ok(())
}

/// Removes the least recently used entries, given with their last use and size, until the rest take at most `max_bytes`
/// bytes. Returns whether it removed any; `remove` keeps those in use.
pub(super) fn evict(
    mut entries: Vec<(SystemTime, u64, PathBuf)>,
    max_bytes: u64,
    remove: fn(&Path) -> Result<bool>,
) -> Result<bool> {
    let all: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    let mut bytes = all;
    entries.sort();
    for (_, freed, path) in entries {
        if bytes > max_bytes && remove(&path)? {
            bytes -= freed;
        }
    }
    Ok(bytes < all)
}

/// Returns whether no process holds the lock of an entry, and none did for a while.
pub(super) fn is_idle(lock: &File, min_idle: Duration) -> Result<bool> {
    // The time is read while the lock is held, because then no process can start to use the entry.
    let is_free = lock.try_lock().is_ok();
    Ok(is_free && lock.metadata()?.modified()?.elapsed().unwrap_or_default() >= min_idle)
}

/// Removes an archive unless it is in use. Returns whether it was removed.
fn remove(archive: &Path) -> Result<bool> {
    let Ok(file) = File::open(archive) else {
        return Ok(false);
    };
    if !is_idle(&file, MIN_IDLE)? {
        return Ok(false);
    }
    removed(std::fs::remove_file(archive.with_extension("notes")))?;
    removed(std::fs::remove_file(archive))?;
    Ok(true)
}

fn removed(result: io::Result<()>) -> Result<()> {
    match result {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}

/// Returns the paths in a folder that end in `.ENDING`; none if the folder does not exist.
pub(super) fn with_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(paths),
        Err(e) => return Err(e.into()),
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ending) {
            paths.push(path);
        }
    }
    Ok(paths)
}
