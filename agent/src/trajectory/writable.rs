//! Checks a folder for results before work is spent on them.

use std::path::Path;

use testwright_sandboxes::private;

use super::{RunFolder, TrajectoryError};

/// Checks that a run can be recorded in this folder, by creating a file there. Nothing is left behind.
///
/// # Errors
///
/// Fails if the folder already has a trajectory, or cannot be created or written.
pub fn check_writable(path: &Path) -> Result<(), TrajectoryError> {
    RunFolder::check_free(path)?;
    let ancestors = path.ancestors().filter(|p| !p.as_os_str().is_empty());
    let missing: Vec<&Path> = ancestors.take_while(|p| !p.exists()).collect();
    let written = private::create(path).and_then(|()| tempfile::tempfile_in(path).map(drop));
    for folder in missing {
        // Another process may already use it.
        let _ = std::fs::remove_dir(folder);
    }
    written.map_err(|source| TrajectoryError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn check_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("runs/now")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        check_writable(folder.path()).unwrap();
        // Not even root can create anything below a file.
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let refused = check_writable(&file.join("runs")).unwrap_err();
        assert!(matches!(refused, TrajectoryError::Write { .. }));
        assert!(file.is_file());
    }
}
