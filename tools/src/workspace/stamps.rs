//! Records when every file of a folder was last written, from its metadata. This detects changes between two
//! moments without reading any file.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::files::is_build_product;

/// Metadata of a file, which tells whether it was written since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn from_metadata(data: &Metadata) -> Stamp {
        Stamp {
            inode: data.ino(),
            size: data.size(),
            mode: data.mode(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }

    /// Keeps the mode only.
    pub(crate) fn of_mode(self) -> Stamp {
        Stamp {
            mode: self.mode,
            ..Stamp::default()
        }
    }

    /// Returns whether the file was written so recently that another write could leave the same stamp.
    pub(super) fn is_racy(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(now.as_secs()).unwrap_or(i64::MAX) - self.changed.0 < 2
    }
}

/// Stamps of all files of a folder, by path relative to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamps(BTreeMap<String, Stamp>);

/// Differences between two moments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths relative to the folder.
    pub modified: Vec<String>,
    /// Whether files were added or removed.
    pub is_other_set: bool,
}

impl Stamps {
    /// Takes the stamps of all files, including ignored ones, but without caches and build products. Returns `None` if
    /// a file cannot be read.
    pub fn take(root: &Path) -> Option<Stamps> {
        let mut stamps = BTreeMap::new();
        add(root, "", &mut stamps).ok()?;
        Some(Stamps(stamps))
    }

    /// Returns the changes between these stamps and later ones.
    pub fn changes_to(&self, now: &Stamps) -> Changes {
        Changes {
            is_other_set: !self.0.keys().eq(now.0.keys()),
            modified: (now.0.iter())
                .filter(|(path, stamp)| self.0.get(*path).is_some_and(|then| then != *stamp))
                .map(|(path, _)| path.clone())
                .collect(),
        }
    }
}

fn add(folder: &Path, name: &str, stamps: &mut BTreeMap<String, Stamp>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        if is_build_product(&own) {
            continue;
        }
        let path = format!("{name}{own}");
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            if !entry.path().join("pyvenv.cfg").exists() {
                add(&entry.path(), &format!("{path}/"), stamps)?;
            }
            continue;
        }
        stamps.insert(path, Stamp::from_metadata(&metadata));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn rewritten_added_removed_files_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a.py"), "1").unwrap();
        std::fs::write(root.join("b.py"), "1").unwrap();
        let first = Stamps::take(root).unwrap();
        assert_eq!(
            first.changes_to(&Stamps::take(root).unwrap()),
            Changes::default()
        );

        // Write the same length after a pause, since the kernel's clock advances in ticks.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(root.join("sub/a.py"), "2").unwrap();
        std::fs::create_dir(root.join("__pycache__")).unwrap();
        std::fs::write(root.join("__pycache__/a.pyc"), "").unwrap();
        let second = Stamps::take(root).unwrap();
        let changes = first.changes_to(&second);
        assert_eq!(changes.modified, ["sub/a.py"]);
        assert!(!changes.is_other_set);

        std::fs::remove_file(root.join("b.py")).unwrap();
        std::fs::write(root.join("c.py"), "1").unwrap();
        assert!(second.changes_to(&Stamps::take(root).unwrap()).is_other_set);
    }
}
