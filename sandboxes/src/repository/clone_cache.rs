//! Clones in the cache. If they exceed the limit, the least recently used ones are removed.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::sandbox::Result;

/// Period after a use in which a clone always stays, because a run may still use it.
const MIN_IDLE: Duration = Duration::from_secs(24 * 3600);

/// Records that a clone is used now, as the modification time of its lock. The caller holds the lock.
pub(super) fn touch(lock: &File) {
    // The time is only a hint, so a failure is ignored.
    let _ = lock.set_modified(SystemTime::now());
}

/// Removes the least recently used clones until the rest take at most `max_bytes` bytes. Blocks.
pub(crate) fn evict_clones(cache: &Path, max_bytes: u64) -> Result<()> {
    let mut clones = Vec::new();
    let entries = std::fs::read_dir(cache.join("repositories"));
    for entry in entries.into_iter().flatten().flatten() {
        let path = entry.path();
        let lock = path.with_extension("lock");
        if path.extension().is_some_and(|e| e == "git")
            && let Ok(used) = std::fs::metadata(&lock).and_then(|about| about.modified())
        {
            clones.push((used, bytes(&path), path));
        }
    }
    let mut all: u64 = clones.iter().map(|(_, bytes, _)| bytes).sum();
    clones.sort();
    for (_, freed, path) in clones {
        if all > max_bytes && remove(&path)? {
            all -= freed;
        }
    }
    Ok(())
}

/// Removes a clone unless it is in use. The lock file stays, because another process may be waiting for it.
fn remove(clone: &Path) -> Result<bool> {
    let lock = File::open(clone.with_extension("lock"))?;
    if lock.try_lock().is_err()
        || lock.metadata()?.modified()?.elapsed().unwrap_or_default() < MIN_IDLE
    {
        return Ok(false);
    }
    // A half-removed clone lacks this file, so it is cloned again.
    let complete = clone.join("complete");
    if complete.exists() {
        std::fs::remove_file(complete)?;
    }
    std::fs::remove_dir_all(clone)?;
    Ok(true)
}

fn bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_dir() {
                folders.push(entry.path());
            }
            bytes += about.blocks() * 512;
        }
    }
    bytes
}
