//! Folders of a local sandbox, filled from its starting point.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::LocalContext;
use super::copy::{CopyMode, copy_entries, copy_tree};
use super::protocol::Isolation;
use super::python::{self, Interpreter};
use super::state_store::{LockedFolder, StateLease, with_context};
use crate::error::SandboxError;
use crate::sandbox::{Result, SandboxSource, Spec};

/// Everything that a sandbox consists of, except its processes.
pub(super) struct SandboxDirs {
    pub owned: LockedFolder,
    /// Host user that owns what is written inside.
    pub owner: Option<u32>,
    /// Saved state that it started from, whose environment is shared.
    pub state: Option<StateLease>,
    pub python: Option<Interpreter>,
}

impl Drop for SandboxDirs {
    /// Removes the folder, even if the caller no longer waits for the sandbox.
    fn drop(&mut self) {
        // Leftovers are reported when the next run cleans up.
        let _ = self.owned.remove();
    }
}

impl SandboxDirs {
    /// Returns the environment of the state in use, if it is shared instead of copied.
    pub(super) fn shares_environment(&self, inner: &LocalContext, spec: &Spec) -> Option<PathBuf> {
        let shared = self.state.as_ref()?.folder.join("store/env");
        (inner.shares_files() && !spec.root && is_real_folder(&shared)).then_some(shared)
    }

    /// Returns the saved workspace below the changes, if it is overlaid instead of copied.
    pub(super) fn overlaid(&self, inner: &LocalContext, spec: &Spec) -> Option<PathBuf> {
        let lower = self.state.as_ref()?.folder.join("workspace");
        (inner.overlay && !spec.root).then_some(lower)
    }
}

/// Returns whether a path is a folder and not a link to one. A link from sandboxed code may lead anywhere on the host.
pub(super) fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

pub(super) fn create_dirs(inner: &LocalContext, spec: &Spec) -> Result<SandboxDirs> {
    let (state, python) = match &spec.start {
        SandboxSource::Python(version) => (None, Some(python::find(version)?)),
        SandboxSource::Image(name) => return Err(no_images(name)),
        SandboxSource::Saved(name) => {
            let state = inner.cache.use_state(name)?;
            let python = state.state.python.clone();
            (Some(state), python)
        }
    };
    if let Some(python) = python.as_ref().filter(|p| !p.executable.exists()) {
        let message = format!(
            "{}, which the environment was built with, does not exist",
            python.executable.display()
        );
        return Err(SandboxError::not_found(message).hint("build the environment again"));
    }
    let owned = inner.cache.new_sandbox(&spec.purpose)?;
    let dirs = SandboxDirs {
        owner: inner.owner(&owned.id),
        owned,
        state,
        python,
    };
    let from = dirs.state.as_ref().map(|state| state.folder.as_path());
    fill(inner, spec, &dirs, from)?;
    Ok(dirs)
}

pub(super) fn no_images(name: &str) -> SandboxError {
    let message = format!("local sandboxes cannot start from the image {name}");
    SandboxError::input(message).hint("use --sandbox docker")
}

/// Creates the folders, and copies the content of those that `from` has.
pub(super) fn fill(
    inner: &LocalContext,
    spec: &Spec,
    dirs: &SandboxDirs,
    from: Option<&Path>,
) -> Result<()> {
    let (folder, owner) = (&dirs.owned.folder, dirs.owner);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    fs::create_dir(folder.join("root"))?;
    let overlaid = dirs.overlaid(inner, spec);
    if let Some(lower) = &overlaid {
        fill_overlay(lower, folder, from, owner)?;
    }
    for (name, mode) in [("workspace", 0o755), ("tmp", 0o1777), ("home", 0o755)] {
        if name == "workspace" && overlaid.is_some() {
            continue;
        }
        let (source, target) = (from.map(|from| from.join(name)), folder.join(name));
        match source.filter(|source| is_real_folder(source)) {
            Some(source) => copy_tree(&source, &target, CopyMode::Copy, owner)
                .map_err(with_context("copy", &source))?,
            None => {
                fs::create_dir(&target)?;
                fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
                chown(&target, owner, owner)?;
            }
        }
    }
    let (source, store) = (from.map(|from| from.join("store")), folder.join("store"));
    if let (true, Some(source)) = (spec.root, &source) {
        return copy_tree(source, &store, CopyMode::Copy, owner)
            .map_err(with_context("copy", source));
    }
    fs::create_dir(&store)?;
    if spec.root {
        chown(&store, owner, owner)?;
    }
    let shared = dirs.shares_environment(inner, spec);
    // Tools cannot write to the store, so its files can be shared with the state.
    let files = match inner.shares_files() {
        true => CopyMode::Link,
        false => CopyMode::Copy,
    };
    if let Some(source) = &source {
        let except = shared.as_ref().map(|_| "env");
        copy_entries(source, &store, files, None, except).map_err(with_context("copy", source))?;
    }
    if let Some(shared) = shared {
        match inner.isolation {
            Isolation::Namespaces => fs::create_dir(store.join("env"))?,
            Isolation::Landlock | Isolation::None => {
                std::os::unix::fs::symlink(shared, store.join("env"))?
            }
        }
    }
    Ok(())
}

/// Creates the changes on top of `lower`: none for a new sandbox, those of its original for a fork.
fn fill_overlay(
    lower: &Path,
    folder: &Path,
    from: Option<&Path>,
    owner: Option<u32>,
) -> Result<()> {
    let (upper, work) = (folder.join("upper"), folder.join("work"));
    match from
        .map(|from| from.join("upper"))
        .filter(|changes| is_real_folder(changes))
    {
        Some(changes) => copy_tree(&changes, &upper, CopyMode::Copy, owner)
            .map_err(with_context("copy", &changes))?,
        None => {
            let like = fs::metadata(lower)?;
            fs::create_dir(&upper)?;
            fs::set_permissions(&upper, like.permissions())?;
            chown(&upper, owner, owner)?;
            let times = fs::FileTimes::new().set_modified(like.modified()?);
            fs::File::open(&upper)?.set_times(times)?;
        }
    }
    fs::create_dir(&work)?;
    Ok(chown(&work, owner, owner)?)
}
