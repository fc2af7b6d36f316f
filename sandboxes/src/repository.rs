//! Git on the host: where old code comes from.
//!
//! A [`Repository`] is one commit of a folder, a bare repository or a URL (or the files of a folder without git);
//! a [`Source`] is its tracked files as a tar archive in the cache. Objects are read by the `git` program in a git folder
//! of ours that refers to the repository's objects: its configuration, hooks and attributes are not in it, so nothing of
//! the repository is executed here, nothing is fetched on its behalf, and `export-ignore` does not apply: old code is
//! whole. What is read is bounded (`limits`).
//!
//! All of it blocks; asynchronous callers use `spawn_blocking`.

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
mod object_hash;
mod objects;
mod patch;
mod patch_base;
mod process;
mod repository_name;
mod resolve;
mod revision;
mod snapshot;
mod status;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use apply::{AppliedPatch, ApplyMethod, apply};
pub(crate) use archive_cache::{ArchiveLease, make_room};
pub(crate) use clone_cache::make_room as make_room_for_clones;
pub use history::{Commit, CommitRange, FileChange};
pub use patch::{apply_check, header_path, touched};
pub use patch_base::{File, FileKind, Files};
pub use tree::Tree;

use crate::sandbox::Result;

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
    /// Keeps the archive in the cache.
    #[serde(skip)]
    pub(crate) held: Option<ArchiveLease>,
}

/// How a repository is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Token for https remotes (sent to its own server alone, never stored).
    pub token: Option<Token>,
    /// Use what the cache has; nothing is fetched.
    pub offline: bool,
}

/// A token, and the server that it is for.
#[derive(Clone)]
pub struct Token {
    host: String,
    value: String,
}

impl Token {
    /// `host` may have a port: `git.example.org:8443`.
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

/// The port of https goes without saying.
fn normal(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    host.strip_suffix(":443").unwrap_or(&host).to_owned()
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token(for {})", self.host)
    }
}

/// One commit of a repository, found but not yet unpacked.
#[derive(Debug)]
pub struct Repository {
    git: git::Git,
    cache: PathBuf,
    name: String,
    commit: Option<String>,
    date: Option<i64>,
    /// The tree to archive: of the commit, of a subfolder in it, or of a snapshot.
    tree: String,
    notes: Vec<String>,
    /// It says of itself that objects are missing.
    partial: bool,
    /// Keeps the git folder of ours that shows it.
    _store: Option<tempfile::TempDir>,
}

/// Opens a path (a work tree, a bare repository, a subfolder of a work tree, a plain folder) or a URL (cloned
/// into the cache) at a revision; without one, at its head.
///
/// Errors: `Input` for a path that is not there, an unknown revision (with the nearest names) or something that is
/// no repository; `Unavailable` for a remote that cannot be reached.
pub fn open(
    location: &str,
    revision: Option<&str>,
    cache: &Path,
    options: &OpenOptions,
) -> Result<Repository> {
    resolve::open(location, revision, cache, options)
}

impl Repository {
    /// `owner/name`, or the folder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Full hash of the commit; `None` for a plain folder.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// The tracked files as an archive; milliseconds when the cache has it.
    pub fn source(&self) -> Result<Source> {
        archive::source(self)
    }
}

impl Source {
    /// The files in the archive, to read single ones without unpacking.
    pub fn tree(&self) -> Result<Tree> {
        Tree::open(&self.archive)
    }

    /// The same commit with files replaced, added (mode 0644) or removed (`None`): code of its own, with a digest of
    /// its own. Modes are kept; nothing is written where nothing differs.
    pub fn with_changes(
        &self,
        files: &BTreeMap<String, Option<Vec<u8>>>,
        cache: &Path,
    ) -> Result<Source> {
        derived_source::with_contents(self, files, cache)
    }

    /// The same for files that a patch has left, with their kinds.
    pub fn with_files(&self, files: &Files, cache: &Path) -> Result<Source> {
        derived_source::with_files(self, files, cache)
    }
}
