//! The disk usage of folders.

use std::path::Path;

use testwright_sandboxes::local::disk_bytes;

/// Lists the subfolders of a folder by name, with the bytes of each. Blocking.
pub fn by_folder(folder: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let measured = folders.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, disk_bytes(&entry.path()))
    });
    measured.collect()
}
