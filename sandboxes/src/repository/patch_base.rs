//! The base of a patch: the files of an archive, overlaid with earlier changes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Tree;
use crate::sandbox::Result;

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Content of the file, or target of the symbolic link.
    pub content: Vec<u8>,
    /// Type of the file, as git distinguishes them.
    pub kind: FileKind,
}

/// Type of a file, as in git's tree entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file, mode 100644.
    Plain,
    /// Executable regular file, mode 100755.
    Executable,
    /// Symbolic link, mode 120000.
    Link,
}

impl FileKind {
    pub(super) fn plain(is_executable: bool) -> FileKind {
        match is_executable {
            true => FileKind::Executable,
            false => FileKind::Plain,
        }
    }

    /// Returns the mode of a file that is not a link.
    pub(super) fn mode(self) -> u32 {
        match self {
            FileKind::Executable => 0o755,
            _ => 0o644,
        }
    }
}

/// Files by path. `None` stands for a deleted file.
pub type Files = BTreeMap<String, Option<File>>;

impl Tree {
    /// Returns a file of the tree, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn file(&self, path: &str) -> Result<Option<File>> {
        let Some(place) = self.place(path) else {
            return Ok(None);
        };
        let (content, kind) = match &place.link {
            Some(target) => (target.as_os_str().as_bytes().to_vec(), FileKind::Link),
            None => {
                let content = self.read(path)?.unwrap_or_default();
                (content, FileKind::plain(place.executable))
            }
        };
        Ok(Some(File { content, kind }))
    }
}

pub(super) struct Base<'a> {
    tree: &'a Tree,
    changed: &'a Files,
}

impl<'a> Base<'a> {
    pub(super) fn new(tree: &'a Tree, changed: &'a Files) -> Base<'a> {
        Base { tree, changed }
    }

    pub(super) fn file(&self, path: &str) -> Result<Option<File>> {
        match self.changed.get(path) {
            Some(file) => Ok(file.clone()),
            None => self.tree.file(path),
        }
    }

    /// Returns a file below the path, if the path is a folder.
    fn below(&self, path: &str) -> Option<String> {
        let start = format!("{path}/");
        let changed = self.changed.iter().filter(|(_, file)| file.is_some());
        let is_kept = |path: &&str| self.changed.get(*path).is_none_or(Option::is_some);
        changed
            .map(|(path, _)| path.as_str())
            .find(|path| path.starts_with(&start))
            .or_else(|| self.tree.below(path).find(is_kept))
            .map(str::to_owned)
    }

    /// Returns the size of a file in bytes, or 0 if it does not exist.
    pub(super) fn size(&self, path: &str) -> u64 {
        match self.changed.get(path) {
            Some(file) => file.as_ref().map_or(0, |f| f.content.len() as u64),
            None => self.tree.place(path).map_or(0, |place| place.size),
        }
    }

    /// Writes one file, or the link on the way to it. For a folder, writes one of its files.
    pub(super) fn materialise(&self, path: &str, folder: &Path) -> Result<()> {
        if !is_plain(path) {
            return Ok(());
        }
        let ends = path.match_indices('/').map(|(i, _)| i).chain([path.len()]);
        for end in ends {
            let part = &path[..end];
            let Some(file) = self.file(part)? else {
                continue;
            };
            let target = folder.join(part);
            if target.symlink_metadata().is_err() {
                if let Some(parent) = target.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                write(&file, &target)?;
            }
            // Nothing is written through a link or below a file.
            return Ok(());
        }
        match self.below(path) {
            Some(inner) => self.materialise(&inner, folder),
            None => Ok(()),
        }
    }
}

/// Returns whether a path stays in the tree and outside git's own folder.
pub(super) fn is_plain(path: &str) -> bool {
    let odd = |part: &str| ["", ".", ".."].contains(&part) || part.eq_ignore_ascii_case(".git");
    !path.split('/').any(odd) && !path.contains('\0')
}

fn write(file: &File, target: &Path) -> Result<()> {
    if file.kind == FileKind::Link {
        std::os::unix::fs::symlink(OsStr::from_bytes(&file.content), target)?;
        return Ok(());
    }
    std::fs::write(target, &file.content)?;
    let permissions = std::fs::Permissions::from_mode(file.kind.mode());
    Ok(std::fs::set_permissions(target, permissions)?)
}

/// Returns all files below a folder of the host.
pub(super) fn read_folder(root: &Path) -> Result<BTreeMap<String, File>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&below))? {
            let entry = entry?;
            let relative = below.join(entry.file_name());
            let metadata = entry.path().symlink_metadata()?;
            if metadata.is_dir() {
                folders.push(relative);
                continue;
            }
            let (content, kind) = if metadata.is_symlink() {
                let target = std::fs::read_link(entry.path())?;
                (target.into_os_string().into_vec(), FileKind::Link)
            } else {
                let is_executable = metadata.permissions().mode() & 0o100 != 0;
                (std::fs::read(entry.path())?, FileKind::plain(is_executable))
            };
            let file = File { content, kind };
            files.insert(relative.to_string_lossy().into_owned(), file);
        }
    }
    Ok(files)
}
