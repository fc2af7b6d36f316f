//! Git on the host: the source of the old code.
//!
//! A [`Repository`] is one commit of a folder, a bare repository or a URL (or the files of a folder without git). A
//! [`Source`] is its tracked files as a tar archive in the cache. What is read is bounded (`limits`).
//!
//! The `git` program reads objects in a separate git folder that only refers to the repository's objects. The
//! repository's configuration, hooks and attributes are not in it. So nothing of the repository is executed here,
//! nothing is fetched on its behalf, and `export-ignore` does not apply: old code is complete.
//!
//! All functions block; asynchronous callers use `spawn_blocking`.

mod accepted;
mod address;
mod apply;
mod archive;
mod archive_cache;
mod clone;
mod clone_cache;
mod config;
mod derived_source;
mod discover;
mod git;
mod git_files;
mod history;
mod isolated_repository;
mod limits;
mod listing;
mod object_hash;
mod objects;
mod patch;
mod patch_base;
mod patch_paths;
mod process;
mod repository_name;
mod resolve;
mod revision;
mod snapshot;
mod status;
mod submodules;
#[cfg(test)]
mod tests;
mod tree;
mod work_tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use apply::{AppliedPatch, apply};
pub(crate) use archive::{EMPTY_SUBMODULES, LFS_POINTERS};
pub(crate) use archive_cache::{ArchiveLease, evict_archives};
pub(crate) use clone_cache::evict_clones as make_room_for_clones;
pub use history::{Commit, CommitRange, FileChange, Tag};
pub use patch::{apply_check, header_path, touched_paths};
pub use patch_base::{File, FileKind, Files};
pub use patch_paths::{with_prefix, without_prefix};
pub use resolve::open;
pub use tree::Tree;
pub use work_tree::{NewBranch, Placement, PushRemote, WorkTree};

use crate::sandbox::Result;

/// The old code, ready to be copied into sandboxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// `owner/name` if the remote reveals it, otherwise the folder's name. Recipes are found by it.
    pub name: String,
    /// Full hash of the base commit; `None` for a plain folder without git.
    pub commit: Option<String>,
    /// Date of the commit (RFC 3339, UTC). Packages are resolved as of it.
    pub date: Option<String>,
    /// Tar archive of the tracked files at that commit, with paths relative to the root.
    pub archive: PathBuf,
    /// Digest (SHA-256, hex) of the archive's content. Equal files give equal digests.
    pub digest: String,
    /// Output of `git describe --tags`, for packages that take their version from git.
    pub describe: Option<String>,
    /// Notes for the user, e.g. that uncommitted changes were ignored.
    pub notes: Vec<String>,
    /// Lease that keeps the archive in the cache.
    #[serde(skip)]
    pub(crate) held: Option<ArchiveLease>,
}

/// Options for opening a repository.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Token for https remotes (sent only to its own server, never stored).
    pub token: Option<Token>,
    /// Use only the cache, and fetch nothing.
    pub offline: bool,
}

/// A token and the server that it belongs to.
#[derive(Clone)]
pub struct Token {
    host: String,
    value: String,
}

impl Token {
    /// Creates a token for a server. `host` may have a port: `git.example.org:8443`.
    pub fn new(host: &str, value: impl Into<String>) -> Token {
        Token {
            host: normal(host),
            value: value.into(),
        }
    }

    fn is_for(&self, host: &str) -> bool {
        self.host == normal(host)
    }
}

/// Normalizes a host: lower case, without the default port of https.
fn normal(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    host.strip_suffix(":443").unwrap_or(&host).to_owned()
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token(for {})", self.host)
    }
}

/// A commit of a repository, resolved but not yet unpacked.
#[derive(Debug)]
pub struct Repository {
    git: git::Git,
    cache: PathBuf,
    name: String,
    commit: Option<String>,
    date: Option<i64>,
    /// Tree to archive: that of the commit, of a subfolder in it, or of a snapshot.
    tree: String,
    notes: Vec<String>,
    /// Commits of the submodules that are checked out, and whose files belong to the tree.
    submodules: BTreeSet<String>,
    /// Whether the repository is a partial clone, which lacks objects.
    partial: bool,
    /// Temporary git folder that gives access to the repository's objects.
    _store: Option<tempfile::TempDir>,
}

/// Returns the address of the remote `origin` of the repository around a folder, if there is one.
///
/// # Errors
///
/// Fails if the folder does not exist, or the configuration of its repository cannot be read.
pub fn remote_of(folder: &Path) -> Result<Option<String>> {
    let Some(found) = discover::discover(&folder.canonicalize()?)? else {
        return Ok(None);
    };
    let config = config::Config::read(&found.common)?;
    Ok(config.get("remote.origin.url").map(str::to_owned))
}

/// Returns the work tree that contains a folder, as git would find it, with links resolved.
pub fn work_tree(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    discover::discover(&folder).ok()??.work_tree
}

impl Repository {
    /// Returns `owner/name`, or the folder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the full hash of the commit; `None` for a plain folder.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }
}

impl Source {
    /// Returns the files in the archive, to read single ones without unpacking.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn tree(&self) -> Result<Tree> {
        Tree::open(&self.archive)
    }

    /// Returns whether the code has a Python file.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn has_python(&self) -> Result<bool> {
        let is_python = |path: &str| {
            let ends = [".py", ".pyx", ".pyi"];
            ends.iter().any(|end| path.ends_with(end))
        };
        Ok(self.tree()?.paths().any(is_python))
    }
}
