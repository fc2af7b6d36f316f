//! Folders and files that are nobody else's: what is kept in them is a private repository's code, and what a model was shown of it.

use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes the folder and those above it, for their owner alone. What is there already stays as it is.
pub fn create(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// The same for a folder that only this program uses: one of the user's own that is there and open to others is closed.
pub fn create_closed(folder: &Path) -> io::Result<()> {
    create(folder)?;
    let metadata = std::fs::metadata(folder)?;
    if metadata.mode() & 0o077 != 0 && metadata.uid() == nix::unistd::geteuid().as_raw() {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Writes a file for its owner alone: aside and renamed, so that it is never half there. Its folder must be there.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut aside = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(path))?;
    aside.write_all(content)?;
    aside.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn new_folders_are_the_owners_and_others_stay_or_are_closed() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        let new = place.path().join("runs/one");
        create(&new).unwrap();
        assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o700, 0o700));
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        create(&new).unwrap();
        assert_eq!(mode(&new), 0o755);
        create_closed(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
    }
}
