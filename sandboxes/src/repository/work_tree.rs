//! A user's work tree: checks whether a patch applies to it, applies the patch, and commits it.
//!
//! A patch is applied as a whole or not at all, and only to files without uncommitted changes. `git apply` does not see
//! the repository, so neither its configuration nor its attributes matter.

mod branch;
mod commit;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::accepted::{Accepted, accepted};
use super::archive::list_few;
use super::config::Config;
use super::discover::{GitFolder, discover};
use super::git::Git;
use super::isolated_repository::isolate;
use super::patch::{apply_command, apply_result, check_text, git_apply, touched_paths};
use super::patch_base::is_plain;
use super::process::{self, ProcessLimits};
use super::repository_name::name_of;
use super::{git_files, limits, status};
use crate::sandbox::Result;
pub use branch::{NewBranch, PushRemote};
use commit::PreparedCommit;

/// The work tree around a folder, or a folder without git.
#[derive(Debug)]
pub struct WorkTree {
    root: PathBuf,
    prefix: String,
    git: Option<GitFolder>,
    /// Temporary folder of the root, if there is one.
    _temporary: Option<TempDir>,
}

/// A new branch for a patch, and a commit of it. Both are optional.
#[derive(Debug, Clone, Copy, Default)]
pub struct Placement<'a> {
    /// Name of a branch to create at HEAD and to switch to.
    pub branch: Option<&'a str>,
    /// Message of a commit of the patch.
    pub message: Option<&'a str>,
}

impl WorkTree {
    /// Finds the work tree of a location. Returns `None` for URLs, missing folders and bare repositories.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read, or if its git folder belongs to another work tree.
    pub fn find(location: &str) -> Result<Option<WorkTree>> {
        let path = Path::new(location);
        if location.contains("://") || !path.is_dir() {
            return Ok(None);
        }
        let path = path.canonicalize()?;
        let Some(git) = discover(&path)? else {
            return Ok(Some(WorkTree {
                root: path,
                prefix: String::new(),
                git: None,
                _temporary: None,
            }));
        };
        let prefix = match git.prefix.as_str() {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        Ok(git.work_tree.clone().map(|root| WorkTree {
            root,
            prefix,
            git: Some(git),
            _temporary: None,
        }))
    }

    /// Returns the root, to which the paths of patches are relative.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path from the root to the folder of the location, with a `/` at its end; empty at the root.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns whether the folder belongs to a git repository.
    pub fn is_repository(&self) -> bool {
        self.git.is_some()
    }

    /// Returns whether the remote `origin` is the repository of this name, `owner/name`.
    ///
    /// # Errors
    ///
    /// Fails if the configuration of the repository cannot be read.
    pub fn is_clone_of(&self, name: &str) -> Result<bool> {
        let Some(git) = &self.git else {
            return Ok(false);
        };
        let config = Config::read(&git.common)?;
        let url = config.get("remote.origin.url");
        Ok(name.contains('/') && url.is_some_and(|url| name_of(url, "") == name))
    }

    /// Checks whether a patch applies to the files as they are. The inner error says why it does not.
    ///
    /// # Errors
    ///
    /// Fails if the check cannot be made, for example because git cannot be run.
    pub fn check(&self, patch: &str) -> Accepted<()> {
        accepted!(check_text(patch));
        let changed = self.uncommitted(&plain_paths(patch))?;
        if !changed.is_empty() {
            let verb = if changed.len() == 1 { "has" } else { "have" };
            let names = list_few(&changed);
            return Ok(Err(format!("{names} {verb} uncommitted changes")));
        }
        self.git_apply(patch, &["--check"])
    }

    /// Returns whether the files are as a patch leaves them, so that it could be removed again.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run.
    pub fn has_applied(&self, patch: &str) -> Result<bool> {
        if check_text(patch).is_err() {
            return Ok(false);
        }
        Ok(self.git_apply(patch, &["--reverse", "--check"])?.is_ok())
    }

    /// Applies a patch, and creates the branch and the commit of the placement. Returns the hash of the commit. The
    /// inner error says why nothing was done.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run, or cannot change the repository. The files are then as before.
    pub fn apply(&self, patch: &str, placement: Placement<'_>) -> Accepted<Option<String>> {
        accepted!(self.check(patch)?);
        let prepared = match (&self.git, placement) {
            (
                _,
                Placement {
                    branch: None,
                    message: None,
                },
            ) => None,
            (None, _) => return Ok(Err("the folder is not a git repository".to_owned())),
            (Some(git), _) => {
                if let Some(operation) = operation_in_progress(git) {
                    return Ok(Err(format!("a {operation} is in progress")));
                }
                let paths = plain_paths(patch);
                let root = &self.root;
                let prepared = PreparedCommit::new(git, root, paths, patch, placement, "HEAD")?;
                Some(accepted!(prepared))
            }
        };
        accepted!(self.git_apply(patch, &[])?);
        let Some(prepared) = prepared else {
            return Ok(Ok(None));
        };
        if let Err(error) = prepared.finish() {
            return Err(match self.git_apply(patch, &["--reverse"]) {
                Ok(Ok(())) => error,
                _ => error.with_leftover("the patch could not be removed from the files again"),
            });
        }
        Ok(Ok(prepared.commit()))
    }

    /// Returns a patch that also makes an edit: `edit` gets the path and the text of each file as the patch leaves it,
    /// and returns the new text. The inner error says why the patch does not apply, or comes from `edit`.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or git cannot be run.
    pub fn edited_patch(
        &self,
        patch: &str,
        edit: &dyn Fn(&str, &str) -> std::result::Result<String, String>,
    ) -> Accepted<String> {
        let folder = tempfile::tempdir()?;
        // The names of the folders become those in the headers.
        let (old, new) = (folder.path().join("a"), folder.path().join("b"));
        let paths = plain_paths(patch);
        for side in [&old, &new] {
            std::fs::create_dir(side)?;
            for path in &paths {
                self.copy_file(path, side)?;
            }
        }
        accepted!(git_apply(&new, patch, &[])?);
        for path in &paths {
            let file = new.join(path);
            let content = git_files::read(&file, limits::TEXT)?.unwrap_or_default();
            match String::from_utf8(content) {
                Ok(text) if !text.is_empty() => {
                    std::fs::write(&file, accepted!(edit(path, &text)))?
                }
                _ => {}
            }
        }
        let mut command = Git::nowhere().command();
        command.current_dir(folder.path()).args([
            "diff",
            "--no-index",
            "--no-prefix",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--binary",
            "a",
            "b",
        ]);
        // git fails if the folders differ, so its exit code says nothing.
        let output = process::run(command, b"", &ProcessLimits::default())?;
        let text = String::from_utf8(output.stdout);
        Ok(text.map_err(|_| "a file of the patch is not UTF-8".to_owned()))
    }

    /// Copies a file of the work tree, if it exists, to the same path below another folder.
    fn copy_file(&self, path: &str, folder: &Path) -> Result<()> {
        let (from, to) = (self.root.join(path), folder.join(path));
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if git_files::copy(&from, &to, limits::FILE)? {
            std::fs::set_permissions(&to, from.metadata()?.permissions())?;
        }
        Ok(())
    }

    /// Returns the paths that differ from the commit, except untracked files, which `git apply` reports.
    fn uncommitted(&self, paths: &[String]) -> Result<Vec<String>> {
        let Some(git) = self.git.as_ref().filter(|_| !paths.is_empty()) else {
            return Ok(Vec::new());
        };
        let scratch = tempfile::tempdir()?;
        let isolated = isolate(git, scratch.path(), false)?;
        let changes = status::changes(git, &isolated, paths)?;
        let tracked = changes.into_iter().filter(|change| !change.is_untracked);
        Ok(tracked.map(|change| change.path).collect())
    }

    fn git_apply(&self, patch: &str, options: &[&str]) -> Accepted<()> {
        let command = apply_command(&self.root, options);
        let output = process::run(command, patch.as_bytes(), &ProcessLimits::default())?;
        Ok(apply_result(output))
    }
}

/// Returns the operation that the user's next commit belongs to, if there is one. A commit or a switch to another branch
/// would become a part of it.
fn operation_in_progress(git: &GitFolder) -> Option<&'static str> {
    let marks = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    ];
    let mut marks = marks.into_iter();
    let (_, operation) = marks.find(|(name, _)| git.own.join(name).symlink_metadata().is_ok())?;
    Some(operation)
}

/// Returns the paths that a patch may touch. git itself rejects a patch with other paths.
fn plain_paths(patch: &str) -> Vec<String> {
    let paths = touched_paths(patch).into_iter();
    paths.filter(|path| is_plain(path)).collect()
}
