//! What folders take on the disk.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of all files below, each counted once however many names it has. Blocking: walks through it. What cannot be read
/// does not count.
pub fn bytes(folder: &Path) -> u64 {
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_dir() {
                folders.push(entry.path());
            }
            if about.nlink() < 2 || about.is_dir() || seen.insert((about.dev(), about.ino())) {
                bytes += about.blocks() * 512;
            }
        }
    }
    bytes
}

/// The folders in a folder, by name, and the bytes of each. Blocking.
pub fn by_folder(folder: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let measured = folders.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, bytes(&entry.path()))
    });
    measured.collect()
}
