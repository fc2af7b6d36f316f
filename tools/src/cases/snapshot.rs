//! A snapshot of a folder's metadata, compiled files included. It detects what one case leaves behind, and removes that
//! before the next case runs.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::workspace::Stamp;

pub(super) struct Snapshot {
    root: PathBuf,
    entries: BTreeMap<PathBuf, Stamp>,
}

impl Snapshot {
    /// Takes a snapshot of a folder. It includes `.git`, since a program may write there too.
    pub(super) fn take(root: &Path) -> io::Result<Snapshot> {
        let mut entries = BTreeMap::new();
        add(root, Path::new(""), &mut entries)?;
        Ok(Snapshot {
            root: root.to_owned(),
            entries,
        })
    }

    /// Accepts a file that was written on purpose.
    pub(super) fn expect(&mut self, path: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(self.root.join(path))?;
        self.entries.insert(path.to_owned(), entry(&metadata));
        Ok(())
    }

    /// Removes new files and returns the paths that were changed or deleted, which cannot be restored here.
    pub(super) fn clean(&self) -> io::Result<Vec<PathBuf>> {
        let mut now = BTreeMap::new();
        add(&self.root, Path::new(""), &mut now)?;
        let new: Vec<&PathBuf> = now
            .keys()
            .filter(|path| !self.entries.contains_key(*path))
            .collect();
        for path in &new {
            if path
                .parent()
                .is_some_and(|above| new.binary_search(&&above.to_owned()).is_ok())
            {
                continue; // already removed with its folder
            }
            remove(&self.root.join(path))?;
        }
        let is_other = |(path, entry): &(&PathBuf, &Stamp)| now.get(*path) != Some(*entry);
        let other = self.entries.iter().filter(is_other);
        Ok(other.map(|(path, _)| path.clone()).collect())
    }
}

fn add(root: &Path, folder: &Path, entries: &mut BTreeMap<PathBuf, Stamp>) -> io::Result<()> {
    for child in fs::read_dir(root.join(folder))? {
        let child = child?;
        let path = folder.join(child.file_name());
        let about = child.metadata()?;
        entries.insert(path.clone(), entry(&about));
        if about.is_dir() {
            add(root, &path, entries)?;
        }
    }
    Ok(())
}

/// Returns the stamp of a file. Of a folder, only the mode counts: in an overlay, its inode changes with its content.
fn entry(about: &Metadata) -> Stamp {
    let stamp = Stamp::from_metadata(about);
    match about.is_dir() {
        true => stamp.of_mode(),
        false => stamp,
    }
}

/// Removes a file, a link, or a folder with its content.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    match about.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Empties a folder, except for these paths and their parents.
pub(super) fn empty(folder: &Path, but: &[PathBuf]) -> io::Result<()> {
    for child in fs::read_dir(folder)? {
        let path = child?.path();
        if path_leads_to(&path, but) {
            continue;
        }
        remove(&path)?;
    }
    Ok(())
}

fn path_leads_to(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| place.starts_with(path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn clean_removes_new_files_and_reports_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("pkg")).unwrap();
        fs::write(root.join("pkg/a.py"), "1").unwrap();
        fs::write(root.join("pkg/b.py"), "1").unwrap();
        let snapshot = Snapshot::take(root).unwrap();
        assert!(snapshot.clean().unwrap().is_empty());

        fs::create_dir_all(root.join("pkg/__pycache__/deep")).unwrap();
        fs::write(root.join("pkg/__pycache__/a.pyc"), "").unwrap();
        fs::write(root.join("pkg/__pycache__/deep/x"), "").unwrap();
        std::os::unix::fs::symlink("/", root.join("link")).unwrap();
        assert!(snapshot.clean().unwrap().is_empty());
        assert!(!root.join("pkg/__pycache__").exists());
        assert!(fs::symlink_metadata(root.join("link")).is_err());
        assert!(Path::new("/").exists());

        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(root.join("pkg/a.py"), "2").unwrap();
        fs::remove_file(root.join("pkg/b.py")).unwrap();
        let changed = snapshot.clean().unwrap();
        assert_eq!(changed, [Path::new("pkg/a.py"), Path::new("pkg/b.py")]);
    }

    #[test]
    fn empty_spares_the_given_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("own/deep")).unwrap();
        fs::create_dir_all(root.join("other/deep")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        empty(root, &[root.join("own/deep")]).unwrap();
        assert!(root.join("own/deep").exists());
        assert!(!root.join("other").exists() && !root.join("file").exists());
    }
}
