//! Git on the host: where old code comes from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The old code, ready to be put into sandboxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// `owner/name` where the remote tells it, else the folder's name: recipes are found by it.
    pub name: String,
    /// Full hash of the base commit; `None` for a plain folder without git.
    pub commit: Option<String>,
    /// The commit's date (RFC 3339, UTC): packages are resolved as of it.
    pub date: Option<String>,
    /// Tar archive of the tracked files at that commit, paths relative to the root.
    pub archive: PathBuf,
    /// Digest (SHA-256, hex) of the archive's content: same files, same digest.
    pub digest: String,
    /// What `git describe --tags` says, for packages that take their version from git.
    pub describe: Option<String>,
    /// What the user should know, e.g. that uncommitted changes were left out.
    pub notes: Vec<String>,
}
