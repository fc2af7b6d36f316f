//! Clones in the cache. If they exceed the limit, the least recently used ones are removed.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::archive_cache::{evict, is_idle, with_ending};
use crate::local::disk_bytes;
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
    for path in with_ending(&cache.join("repositories"), "git")? {
        let lock = std::fs::metadata(path.with_extension("lock"));
        if let Ok(used) = lock.and_then(|about| about.modified()) {
            clones.push((used, disk_bytes(&path), path));
        }
    }
    evict(clones, max_bytes, remove).map(drop)
}

/// Removes a clone unless it is in use. The lock file stays, because another process may be waiting for it.
fn remove(clone: &Path) -> Result<bool> {
    let lock = File::open(clone.with_extension("lock"))?;
    if !is_idle(&lock, MIN_IDLE)? {
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
