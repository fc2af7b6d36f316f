//! Archives in the cache: those in use stay, and of the others the oldest go where all of them take too much.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Source;
use crate::sandbox::Result;

/// What was used within this time stays in any case: it may be about to be used again.
const RECENT: Duration = Duration::from_secs(3600);

/// An archive is not removed while this, or a clone of it, lives: a lock of the kernel on the file.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveLease {
    _file: Arc<File>,
}

/// Says nothing about what a source is.
impl PartialEq for ArchiveLease {
    fn eq(&self, _: &ArchiveLease) -> bool {
        true
    }
}

/// Uses an archive now; `None` if it is not there.
pub(super) fn hold(archive: &Path) -> Result<Option<ArchiveLease>> {
    let file = match File::open(archive) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    file.lock_shared()?;
    // It may have been removed before it was locked.
    let (found, held) = (std::fs::metadata(archive), file.metadata()?);
    if found.is_ok_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino())) {
        // Somebody else's file cannot be touched; that it was used is a hint and no more.
        let _ = file.set_modified(SystemTime::now());
        return Ok(Some(ArchiveLease {
            _file: Arc::new(file),
        }));
    }
    Ok(None)
}

/// Removes archives that were used longest ago until all take no more than `most` bytes, with what is noted about them.
/// Blocking.
pub(crate) fn make_room(cache: &Path, most: u64) -> Result<()> {
    let folder = cache.join("sources");
    let mut archives = Vec::new();
    for path in with_ending(&folder, "tar")? {
        if let Ok(found) = std::fs::metadata(&path) {
            archives.push((found.modified()?, found.blocks() * 512, path));
        }
    }
    let mut bytes: u64 = archives.iter().map(|(_, bytes, _)| bytes).sum();
    if bytes <= most {
        return Ok(());
    }
    archives.sort();
    for (_, freed, archive) in archives {
        if bytes > most && remove(&archive)? {
            bytes -= freed;
        }
    }
    for record in with_ending(&folder, "json")? {
        let text = std::fs::read(&record).unwrap_or_default();
        let known = serde_json::from_slice::<Source>(&text);
        if known.is_ok_and(|source| !source.archive.exists()) {
            removed(std::fs::remove_file(&record))?;
        }
    }
    Ok(())
}

/// Unless it is in use.
fn remove(archive: &Path) -> Result<bool> {
    let Ok(file) = File::open(archive) else {
        return Ok(false);
    };
    // Asked for again, now that nobody can begin to use it.
    if file.try_lock().is_err()
        || file.metadata()?.modified()?.elapsed().unwrap_or_default() < RECENT
    {
        return Ok(false);
    }
    removed(std::fs::remove_file(archive.with_extension("notes")))?;
    removed(std::fs::remove_file(archive))?;
    Ok(true)
}

fn removed(done: io::Result<()>) -> Result<()> {
    match done {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}

fn with_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(e.into()),
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
    Ok(found)
}
