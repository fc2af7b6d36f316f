//! Checks the folder of `--out` before any work.

use std::path::Path;

use testwright_config::error::{Error, Result};

/// Checks that the path of `--out` can be a folder.
///
/// # Errors
///
/// Fails if the path is a file.
pub(super) fn check_is_folder(out: &Path) -> Result<()> {
    match out.metadata() {
        Ok(metadata) if !metadata.is_dir() => {
            Err(Error::usage(format!("use --out {}", out.display()))
                .cause(format!("{} is a file", out.display()))
                .hint("pass a folder with --out"))
        }
        // The first access reports other problems.
        _ => Ok(()),
    }
}
