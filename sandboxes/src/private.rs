//! Folders and files that only their owner can access: they contain code of private repositories, and what models were
//! shown of it.

use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Creates a folder and its parents, accessible only to their owner. Existing folders stay unchanged.
///
/// # Errors
///
/// Fails if a folder cannot be created.
pub fn create(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// Creates a folder that only this program uses. If the user's own folder exists and is open to others, it is closed.
///
/// # Errors
///
/// Fails if the folder cannot be created or closed.
pub fn create_closed(folder: &Path) -> io::Result<()> {
    create(folder)?;
    let metadata = std::fs::metadata(folder)?;
    if metadata.mode() & 0o077 != 0 && metadata.uid() == nix::unistd::geteuid().as_raw() {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Closes a folder, the folders directly in it and those in its subfolder `local`, if they belong to the user.
/// Sandboxes of earlier versions could open them.
///
/// # Errors
///
/// Fails if `cache` cannot be created, or a folder cannot be closed.
pub fn close_folders(cache: &Path) -> io::Result<()> {
    create_closed(cache)?;
    for folder in [cache.to_owned(), cache.join("local")] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            // A link is skipped: its target may be any folder of the user.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                create_closed(&entry.path())?;
            }
        }
    }
    Ok(())
}

/// Keeps a folder out of the user's commits, by a `.gitignore` in it. An existing file or link is not touched.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn ignore_in_git(folder: &Path) -> io::Result<()> {
    match std::fs::File::create_new(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a file atomically, accessible only to its owner. Its folder must exist.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut aside = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(path))?;
    aside.write_all(content)?;
    aside.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests;
