//! The module that Python processes started by tests load (see `subprocess_trace.py`).

use std::path::{Path, PathBuf};

const MODULE: &str = include_str!("subprocess_trace.py");

/// Python imports a module of this name from `PYTHONPATH` when it starts.
pub const HOOK: &str = "sitecustomize.py";

/// Writes the module into its own folder, and returns its path.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn write_hook(folder: &Path) -> std::io::Result<PathBuf> {
    let hook = folder.join(HOOK);
    if std::fs::read(&hook).ok().as_deref() != Some(MODULE.as_bytes()) {
        std::fs::create_dir_all(folder)?;
        std::fs::write(&hook, MODULE)?;
    }
    Ok(hook)
}
