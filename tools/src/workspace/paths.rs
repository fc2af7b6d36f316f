//! Keeps paths from a model inside the workspace.

use std::path::{Component, Path, PathBuf};

use crate::error::{Result, ToolError, refusal};

/// Placeholder for the repository's folder in normalized text.
pub(crate) const REPO: &str = "<repo>/";

/// Implements [`super::Workspace::resolve`]. `root` has its links resolved; `configured_root` is the same folder as written
/// in the configuration.
pub(super) fn resolve(root: &Path, configured_root: &Path, path: &str) -> Result<PathBuf> {
    let trimmed = path.trim();
    if trimmed.is_empty() {
        return Err(ToolError::refused("The path is empty."));
    }
    if trimmed.contains('\0') {
        return Err(ToolError::refused("The path holds a NUL character."));
    }
    let outside = || {
        refusal!(
            "`{trimmed}` lies outside the workspace. Give a path relative to the repository's root, e.g. `tests/test_x.py`."
        )
    };
    // Answers show paths with this placeholder.
    let written_path = Path::new(trimmed.strip_prefix(REPO).unwrap_or(trimmed));
    let relative_path = if written_path.is_absolute() {
        written_path
            .strip_prefix(root)
            .or_else(|_| written_path.strip_prefix(configured_root))
            .map_err(|_| outside())?
    } else {
        written_path
    };
    let mut parts = Vec::new();
    for part in relative_path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop().ok_or_else(outside)?;
            }
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    follow(root, &parts, trimmed)
}

/// Follows links one path component at a time, so that none leads out of the root.
fn follow(root: &Path, parts: &[&std::ffi::OsStr], display_path: &str) -> Result<PathBuf> {
    let mut here = root.to_path_buf();
    let mut exists = true;
    for part in parts {
        here.push(part);
        if !exists {
            continue;
        }
        match std::fs::symlink_metadata(&here) {
            Ok(data) if data.is_symlink() => {
                here = std::fs::canonicalize(&here).map_err(|_| {
                    refusal!("`{display_path}` goes through a link that leads nowhere.")
                })?;
                if !here.starts_with(root) {
                    return Err(refusal!(
                        "`{display_path}` goes through a link that leads out of the workspace."
                    ));
                }
            }
            Ok(_) => {}
            Err(_) => exists = false,
        }
    }
    here.strip_prefix(root)
        .map(Path::to_path_buf)
        .map_err(|_| refusal!("`{display_path}` lies outside the workspace."))
}
