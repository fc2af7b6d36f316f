//! What a folder takes on disk.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of the files and folders, without those that `shared` has at the same place: the same file, not a copy. A
/// file with several names counts once.
pub(super) fn own_bytes(folder: &Path, shared: Option<&Path>) -> io::Result<u64> {
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        for entry in fs::read_dir(folder.join(&relative))? {
            let entry = entry?;
            let (found, path) = (entry.metadata()?, relative.join(entry.file_name()));
            let file = (found.dev(), found.ino());
            if found.is_dir() {
                waiting.push(path);
            } else if found.nlink() > 1 {
                let there = shared.and_then(|shared| fs::symlink_metadata(shared.join(&path)).ok());
                let is_shared = there.is_some_and(|there| (there.dev(), there.ino()) == file);
                if is_shared || !seen.insert(file) {
                    continue;
                }
            }
            bytes += found.blocks() * 512;
        }
    }
    Ok(bytes)
}
