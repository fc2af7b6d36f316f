//! Files of the host that every sandbox is given and none can write: copied once by each process, and linked into sandboxes.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::state_store::{Cache, LockedFolder, about};
use crate::sandbox::Result;

/// What is linked must be readable by whoever runs inside: it belongs to the user of this process.
const READABLE: u32 = 0o004;

#[derive(Default)]
pub struct LinkedFiles(Mutex<Option<Copies>>);

struct Copies {
    owned: LockedFolder,
    by_file: HashMap<FileVersion, PathBuf>,
}

/// A file as it is now: another one under its name, or another content, is not this one.
#[derive(PartialEq, Eq, Hash)]
struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
    mode: u32,
}

impl LinkedFiles {
    /// Makes `target`, which may be there, a link to the copy of `from`. Answers whether it did: one with this mode cannot
    /// be shared.
    pub fn link(&self, cache: &Cache, from: &Path, mode: u32, target: &Path) -> Result<bool> {
        if mode & READABLE == 0 {
            return Ok(false);
        }
        let copy = self.copy(cache, from, mode)?;
        let (source, found) = (fs::metadata(&copy)?, fs::symlink_metadata(target));
        match found {
            Ok(found) if found.ino() == source.ino() && found.dev() == source.dev() => {
                return Ok(true);
            }
            Ok(_) => fs::remove_file(target).map_err(about("replace", target))?,
            Err(_) => {}
        }
        fs::hard_link(&copy, target).map_err(about("link", target))?;
        Ok(true)
    }

    fn copy(&self, cache: &Cache, from: &Path, mode: u32) -> Result<PathBuf> {
        let mut source = fs::File::open(from).map_err(about("open", from))?;
        let found = source.metadata()?;
        let version = FileVersion {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified: found.modified().ok(),
            mode: mode & 0o7777,
        };
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = match copies.as_mut() {
            Some(copies) => copies,
            None => copies.insert(Copies {
                owned: cache.new_sandbox("shared")?,
                by_file: HashMap::new(),
            }),
        };
        if let Some(path) = copies.by_file.get(&version).filter(|path| path.exists()) {
            return Ok(path.clone());
        }
        let path = copies.owned.folder.join(copies.by_file.len().to_string());
        let mut file = fs::File::create(&path).map_err(about("create", &path))?;
        std::io::copy(&mut source, &mut file).map_err(about("copy", from))?;
        file.set_permissions(fs::Permissions::from_mode(version.mode))?;
        copies.by_file.insert(version, path.clone());
        Ok(path)
    }
}

impl Drop for LinkedFiles {
    /// What this leaves when the process is killed goes with the sandboxes that it leaves.
    fn drop(&mut self) {
        let copies = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(copies) = copies.take() {
            let _ = copies.owned.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    struct Fixture {
        folder: tempfile::TempDir,
        cache: Cache,
        shared: LinkedFiles,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("program"), b"one").unwrap();
        Fixture {
            cache: Cache::open(&folder.path().join("cache")).unwrap(),
            folder,
            shared: LinkedFiles::default(),
        }
    }

    impl Fixture {
        fn link(&self, name: &str, mode: u32) -> Option<fs::Metadata> {
            let (from, target) = (
                self.folder.path().join("program"),
                self.folder.path().join(name),
            );
            let linked = self.shared.link(&self.cache, &from, mode, &target).unwrap();
            linked.then(|| fs::metadata(target).unwrap())
        }
    }

    #[test]
    fn a_file_is_copied_once_and_again_when_it_has_changed() {
        let f = fixture();
        let (one, two) = (f.link("a", 0o755).unwrap(), f.link("b", 0o755).unwrap());
        assert_eq!(one.ino(), two.ino());
        assert_eq!(one.permissions().mode() & 0o7777, 0o755);
        assert_eq!(f.link("b", 0o755).unwrap().ino(), one.ino());
        // Whoever replaces a program does not write into the one that runs.
        fs::remove_file(f.folder.path().join("program")).unwrap();
        fs::write(f.folder.path().join("program"), b"other").unwrap();
        assert_ne!(f.link("b", 0o755).unwrap().ino(), one.ino());
        assert_eq!(fs::read(f.folder.path().join("a")).unwrap(), b"one");
        assert_eq!(fs::read(f.folder.path().join("b")).unwrap(), b"other");
    }

    #[test]
    fn what_others_may_not_read_is_not_shared() {
        let f = fixture();
        assert!(f.link("a", 0o700).is_none());
        assert!(!f.folder.path().join("a").exists());
    }

    #[test]
    fn copies_go_with_the_process_and_links_stay() {
        let f = fixture();
        f.link("a", 0o755).unwrap();
        let sandboxes = f.folder.path().join("cache/sandboxes");
        assert_eq!(fs::read_dir(&sandboxes).unwrap().count(), 2);
        drop(f.shared);
        assert_eq!(fs::read_dir(&sandboxes).unwrap().count(), 0);
        assert_eq!(fs::read(f.folder.path().join("a")).unwrap(), b"one");
    }
}
