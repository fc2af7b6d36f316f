//! Access to single files of an archive without unpacking it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::archive_cache::{self, ArchiveLease};
use super::limits;
use crate::sandbox::Result;

/// An index of the archive of a [`super::Source`].
#[derive(Debug)]
pub struct Tree {
    archive: PathBuf,
    _held: Option<ArchiveLease>,
    entries: BTreeMap<String, ArchiveEntry>,
}

#[derive(Debug, Clone)]
pub(super) struct ArchiveEntry {
    offset: u64,
    pub size: u64,
    pub executable: bool,
    /// Target of a symbolic link.
    pub link: Option<PathBuf>,
}

impl Tree {
    /// Reads the index of an archive, and keeps the archive in the cache while the tree exists.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn open(archive: &Path) -> Result<Tree> {
        let mut entries = BTreeMap::new();
        let held = archive_cache::acquire_lease(archive)?;
        let mut tar = tar::Archive::new(File::open(archive)?);
        for entry in tar.entries_with_seek()? {
            let entry = entry?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let link = match entry.header().entry_type() {
                tar::EntryType::Symlink => entry.link_name()?.map(|l| l.into_owned()),
                tar::EntryType::Regular => None,
                _ => continue,
            };
            let place = ArchiveEntry {
                offset: entry.raw_file_position(),
                size: entry.size(),
                executable: entry.header().mode()? & 0o111 != 0,
                link,
            };
            entries.insert(path, place);
        }
        Ok(Tree {
            archive: archive.to_owned(),
            _held: held,
            entries,
        })
    }

    /// Returns the part below a folder, with paths relative to it. An empty name stands for the whole tree.
    pub(crate) fn subtree(&self, folder: &str) -> Tree {
        let prefix = match folder {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let entries = self.entries.range(prefix.clone()..);
        let inside = entries.map_while(|(path, entry)| Some((path.strip_prefix(&prefix)?, entry)));
        Tree {
            archive: self.archive.clone(),
            _held: self._held.clone(),
            entries: inside
                .map(|(path, entry)| (path.to_owned(), entry.clone()))
                .collect(),
        }
    }

    /// Returns the paths of all files and links, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns whether the archive has a file or link at this path.
    pub fn contains(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    /// Returns whether there are files or links below a path.
    pub fn has_folder(&self, path: &str) -> bool {
        self.below(path).next().is_some()
    }

    /// Returns the content of a regular file, or `None` if the path has none.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let Some(place) = self.entries.get(path).filter(|p| p.link.is_none()) else {
            return Ok(None);
        };
        let mut file = File::open(&self.archive)?;
        file.seek(SeekFrom::Start(place.offset))?;
        let mut content = Vec::new();
        file.take(place.size).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// Returns the content as text, with invalid UTF-8 replaced. Returns `None` also for files that are too large to be
    /// a configuration or a script.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn text(&self, path: &str) -> Result<Option<String>> {
        let long = |place: &ArchiveEntry| place.size > limits::TEXT;
        if self.entries.get(path).is_some_and(long) {
            return Ok(None);
        }
        Ok(self
            .read(path)?
            .map(|c| String::from_utf8_lossy(&c).into_owned()))
    }

    pub(crate) fn is_larger(&self, path: &str, bytes: u64) -> bool {
        self.place(path).is_some_and(|place| place.size > bytes)
    }

    /// Returns the paths of files and links below a folder.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = format!("{folder}/");
        let from = self.entries.range(start.clone()..);
        from.map(|(path, _)| path.as_str())
            .take_while(move |path| path.starts_with(&start))
    }

    pub(super) fn place(&self, path: &str) -> Option<&ArchiveEntry> {
        self.entries.get(path)
    }
}
