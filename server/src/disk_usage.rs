//! The disk usage of folders.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Sums the bytes of all files below a folder; a file with several names counts once. Unreadable files are skipped.
/// Blocking.
pub fn bytes(folder: &Path) -> u64 {
    let mut inodes = BTreeSet::new();
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
            if about.nlink() < 2 || about.is_dir() || inodes.insert((about.dev(), about.ino())) {
                bytes += about.blocks() * 512;
            }
        }
    }
    bytes
}

/// Lists the subfolders of a folder by name, with the bytes of each. Blocking.
pub fn by_folder(folder: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let measured = folders.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, bytes(&entry.path()))
    });
    measured.collect()
}
