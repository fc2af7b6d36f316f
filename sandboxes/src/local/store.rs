//! Files that the host puts into a sandbox's store, where sandboxed code cannot write.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::LocalContext;
use super::copy::{CopyMode, copy_entries};
use super::program_writer::{self, Content};
use super::sandbox_dirs::SandboxDirs;
use super::state_store::with_context;
use crate::error::SandboxError;
use crate::sandbox::{Result, unique_id};

/// The store of one sandbox. Sandboxed code cannot change the folders on the way to a file.
pub(super) struct Store {
    pub inner: Arc<LocalContext>,
    pub dirs: Arc<SandboxDirs>,
    /// Path of the store inside the sandbox.
    pub inside: PathBuf,
    /// Whether its environment is shared with a saved state.
    pub shares_environment: bool,
}

impl Store {
    pub(super) fn write(&self, relative: &Path, content: &[u8], mode: u32) -> Result<()> {
        let target = self.place(relative)?;
        self.write_content(&target, Content::Bytes(content), mode)
    }

    /// Writes the content of a file on the host, which may be large.
    pub(super) fn add_file(&self, relative: &Path, from: &Path, mode: u32) -> Result<()> {
        let (target, inner) = (self.place(relative)?, &self.inner);
        if inner.shares_files()
            && (inner.linked_files).link(&inner.cache, &inner.launcher, from, mode, &target)?
        {
            return Ok(());
        }
        let file = File::open(from).map_err(with_context("open", from))?;
        self.write_content(&target, Content::File(file), mode)
    }

    /// Writes a file atomically, so that no process sees an incomplete one.
    fn write_content(&self, target: &Path, content: Content<'_>, mode: u32) -> Result<()> {
        let aside = target.with_file_name(format!(".new-{}", unique_id()));
        let written = program_writer::write(&self.inner.launcher, &aside, content, mode)
            .and_then(|()| chown(&aside, self.dirs.owner, self.dirs.owner))
            .and_then(|()| fs::rename(&aside, target));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written.map_err(with_context("write", target))
    }

    pub(super) fn unpack(&self, relative: &Path, archive: &Path) -> Result<()> {
        let folder = self.folder(relative, relative)?;
        let owner = self.dirs.owner;
        let file = fs::File::open(archive).map_err(with_context("open", archive))?;
        // An existing file may be shared with a saved state, so the archive is unpacked elsewhere and copied.
        let aside = tempfile::tempdir_in(&self.dirs.owned.folder)?;
        let mut archive = tar::Archive::new(std::io::BufReader::new(file));
        archive.set_preserve_permissions(true);
        archive.set_preserve_mtime(true);
        archive.unpack(aside.path())?;
        for entry in fs::read_dir(aside.path())? {
            let target = folder.join(entry?.file_name());
            match fs::symlink_metadata(&target) {
                Ok(metadata) if metadata.is_dir() => super::removal::remove_tree(&target)?,
                Ok(_) => fs::remove_file(&target)?,
                Err(_) => {}
            }
        }
        copy_entries(aside.path(), &folder, CopyMode::Copy, owner, None)
            .map_err(with_context("copy", aside.path()))
    }

    /// Returns the path of a file on the host, and creates its folders if needed.
    fn place(&self, relative: &Path) -> Result<PathBuf> {
        let (Some(parent), Some(last)) = (relative.parent(), relative.file_name()) else {
            return Err(self.refused(relative, "the path has no file name"));
        };
        Ok(self.folder(relative, parent)?.join(last))
    }

    /// Returns a folder of the store on the host, creating it if needed. `relative` is the path to write, for errors.
    fn folder(&self, relative: &Path, parents: &Path) -> Result<PathBuf> {
        if relative.starts_with("env") && self.shares_environment {
            let why = "the environment is shared with other sandboxes";
            return Err(self.refused(relative, why));
        }
        let mut folder = self.dirs.owned.folder.join("store");
        for name in parents.components() {
            let Component::Normal(name) = name else {
                return Err(self.refused(relative, "the path must not contain `..`"));
            };
            folder.push(name);
            match fs::symlink_metadata(&folder) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(self.refused(relative, "a part of the path is not a folder")),
                Err(_) => {
                    fs::create_dir(&folder)?;
                    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
                }
            }
        }
        Ok(folder)
    }

    fn refused(&self, relative: &Path, why: &str) -> SandboxError {
        let path = self.inside.join(relative);
        let text = format!("write {}: {why}", path.display());
        SandboxError::input(text)
    }
}
