//! The base commit: a tar archive with an index in memory; content is read on demand.

#![allow(unreachable_pub)] // fuzz targets use these items

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{Result, ToolError};

/// Bytes compared at a time.
const PIECE: usize = 64 << 10;

pub struct Archive {
    file: File,
    entries: BTreeMap<PathBuf, Entry>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Entry {
    offset: u64,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// The target of a symbolic link.
    pub link: Option<PathBuf>,
}

impl Entry {
    /// Returns the mode that git records.
    pub fn git_mode(&self) -> u32 {
        git_mode(self.link.is_some(), self.mode)
    }
}

pub fn git_mode(link: bool, permissions: u32) -> u32 {
    match (link, permissions & 0o100 != 0) {
        (true, _) => 0o120_000,
        (false, true) => 0o100_755,
        (false, false) => 0o100_644,
    }
}

impl Archive {
    /// Opens the archive of the base commit and reads its index.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read or is damaged.
    pub fn open(path: &Path) -> Result<Archive> {
        let broken = |e: std::io::Error| {
            ToolError::Broken(format!(
                "the base archive {} cannot be read: {e}",
                path.display()
            ))
        };
        let file = File::open(path).map_err(broken)?;
        let length = file.metadata().map_err(broken)?.len();
        let mut archive = tar::Archive::new(file.try_clone().map_err(broken)?);
        let (mut entries, mut folders) = (BTreeMap::new(), BTreeSet::new());
        for entry in archive.entries_with_seek().map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let kind = entry.header().entry_type();
            if !kind.is_file() && !kind.is_symlink() {
                continue;
            }
            // Check the size first: reading allocates memory for the declared size.
            if entry.size() > length {
                return Err(broken(std::io::ErrorKind::UnexpectedEof.into()));
            }
            let Some(name) = plain(&entry.path().map_err(broken)?) else {
                continue;
            };
            let link = match kind.is_symlink() {
                true => entry.link_name().map_err(broken)?.map(|l| l.into_owned()),
                false => None,
            };
            let mut folder = name.parent();
            while let Some(path) = folder.filter(|p| !folders.contains(*p)) {
                folders.insert(path.to_path_buf());
                folder = path.parent();
            }
            entries.insert(
                name,
                Entry {
                    offset: entry.raw_file_position(),
                    size: entry.size(),
                    mode: entry.header().mode().map_err(broken)? & 0o777,
                    link,
                },
            );
        }
        Ok(Archive {
            file,
            entries,
            folders,
        })
    }

    pub fn entry(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(path)
    }

    pub fn entries(&self) -> &BTreeMap<PathBuf, Entry> {
        &self.entries
    }

    pub fn has_folder(&self, path: &Path) -> bool {
        self.folders.contains(path)
    }

    /// Returns the content of a file; `None` for links and for paths that are not in the archive.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        match self.entries.get(path) {
            Some(entry) if entry.link.is_none() => Ok(Some(self.content(entry)?)),
            _ => Ok(None),
        }
    }

    /// Returns whether the file has this content.
    ///
    /// # Errors
    ///
    /// Fails if the archive or the file cannot be read.
    pub fn holds(&self, entry: &Entry, file: &File) -> std::io::Result<bool> {
        let (mut then, mut now) = (vec![0; PIECE], vec![0; PIECE]);
        let mut at = 0;
        while at < entry.size {
            let size =
                usize::try_from(entry.size - at).map_or(PIECE, |remaining| remaining.min(PIECE));
            match file.read_exact_at(&mut now[..size], at) {
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
            self.file
                .read_exact_at(&mut then[..size], entry.offset + at)?;
            if then[..size] != now[..size] {
                return Ok(false);
            }
            at += size as u64;
        }
        Ok(true)
    }

    /// Returns the content that git records; for a link, its target.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read or is damaged.
    pub fn content(&self, entry: &Entry) -> Result<Vec<u8>> {
        use std::os::unix::ffi::OsStrExt;
        if let Some(link) = &entry.link {
            return Ok(link.as_os_str().as_bytes().to_vec());
        }
        let size = usize::try_from(entry.size)
            .map_err(|_| ToolError::Broken("a file of the base archive is too large".to_owned()))?;
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, entry.offset)?;
        Ok(bytes)
    }
}

/// Returns the path without a leading `./`; `None` if it is absolute or contains `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!plain.as_os_str().is_empty()).then_some(plain)
}
