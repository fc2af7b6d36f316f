//! A branch and a commit in a user's repository.
//!
//! Objects and the index are written by a git that sees only an isolated copy of the git folder, because even an update of
//! the index runs filters of the configuration. A git in the user's own git folder changes refs; hooks are disabled.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::Placement;
use crate::repository::accepted::{Accepted, accepted};
use crate::repository::discover::{GitFolder, is_ref};
use crate::repository::git::Git;
use crate::repository::isolated_repository::{IsolatedRepository, isolate};
use crate::repository::process::{self, ProcessLimits};
use crate::sandbox::Result;

/// Variables with which the user overrides the author and the committer.
const IDENTITY: [&str; 6] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// A commit whose objects exist, but which no ref names yet.
pub(super) struct PreparedCommit {
    isolated: IsolatedRepository,
    /// Folder of the user's objects.
    objects: PathBuf,
    /// The user's own git folder.
    own: Git,
    /// The user's index.
    index: PathBuf,
    root: PathBuf,
    /// Paths that the patch may touch.
    paths: Vec<String>,
    /// Ref to create.
    branch: Option<String>,
    old: String,
    /// The commit, or the old one if none is wanted.
    new: String,
    /// Folder of the isolated copy.
    _scratch: TempDir,
}

impl PreparedCommit {
    /// Writes the objects of a commit of the patch on top of a base, such as HEAD. The inner error says why the
    /// placement is not possible.
    pub(super) fn new(
        git: &GitFolder,
        root: &Path,
        paths: Vec<String>,
        patch: &str,
        placement: Placement<'_>,
        base: &str,
    ) -> Accepted<Self> {
        let scratch = tempfile::tempdir()?;
        let isolated = isolate(git, scratch.path(), false)?;
        let old = accepted!(find_commit(&isolated.git, base)?);
        let branch = placement.branch.map(|name| new_ref(&isolated.git, name));
        let branch = accepted!(branch.transpose()?.transpose());
        let mut prepared = PreparedCommit {
            objects: git.common.join("objects"),
            own: Git::at(&git.own)?,
            index: git.own.join("index"),
            root: root.to_owned(),
            paths,
            branch,
            new: old.clone(),
            old,
            isolated,
            _scratch: scratch,
        };
        if let Some(message) = placement.message {
            prepared.new = prepared.write_objects(patch, message)?;
        }
        Ok(Ok(prepared))
    }

    /// Returns the hash of the commit, if one was wanted.
    pub(super) fn commit(&self) -> Option<String> {
        (self.new != self.old).then(|| self.new.clone())
    }

    /// Changes the index, and creates the branch or moves the current one. The index is unchanged if that fails.
    pub(super) fn finish(&self) -> Result<()> {
        if self.new == self.old {
            return self.move_head();
        }
        self.update_index(&self.new)?;
        self.move_head()
            .map_err(|error| match self.update_index(&self.old) {
                Ok(()) => error,
                Err(_) => error.with_leftover("the files of the commit are still in the index"),
            })
    }

    /// Creates the branch without switching to it. It must not exist.
    pub(super) fn create_branch(&self, reason: &str) -> Result<()> {
        if let Some(branch) = &self.branch {
            let none = "0".repeat(self.old.len());
            self.own
                .run(&["update-ref", "-m", reason, branch, &self.new, &none])?;
        }
        Ok(())
    }

    fn write_objects(&self, patch: &str, message: &str) -> Result<String> {
        let git = &self.isolated.git;
        self.run(git.command(), &["read-tree", &self.old], b"")?;
        let apply = ["apply", "--cached", "--whitespace=nowarn", "-"];
        self.run(git.command(), &apply, patch.as_bytes())?;
        // A partial clone does not have all objects.
        let tree = self.run(git.command(), &["write-tree", "--missing-ok"], b"")?;
        // The identity comes from the user's configuration.
        let mut command = git.network();
        for name in IDENTITY {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for key in ["user.name", "user.email"] {
            if let Some(value) = self.isolated.config.get(key) {
                command.args(["-c", &format!("{key}={value}")]);
            }
        }
        let commit = ["commit-tree", &tree, "-p", &self.old];
        let written = self.run(command, &commit, message.as_bytes());
        written.map_err(|error| error.hint("set user.name and user.email with `git config`"))
    }

    /// Runs a git that writes objects into the user's repository. Returns its output.
    fn run(&self, mut command: Command, arguments: &[&str], input: &[u8]) -> Result<String> {
        let index = self.isolated.folder.path().join("commit-index");
        command
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_INDEX_FILE", index)
            .args(arguments);
        let output = process::run(command, input, &ProcessLimits::default())?;
        let printed = output.printed(arguments[0])?;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// Sets the files of the patch in the user's index to those of a commit.
    fn update_index(&self, commit: &str) -> Result<()> {
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
        arguments.extend(self.paths.iter().map(String::as_str));
        let entries = self.run(self.isolated.git.command(), &arguments, b"")?;
        // The mode 0 removes an entry, because the commit may not have the file.
        let no_object = "0".repeat(commit.len());
        let removals = self.paths.iter();
        let removals = removals.map(|path| format!("0 {no_object}\t{path}\0"));
        let input = removals.collect::<String>() + &entries;
        let mut command = self.isolated.git.command();
        command.env("GIT_INDEX_FILE", &self.index);
        command.args(["-c", "core.bare=false", "--work-tree"]);
        command.arg(&self.root);
        command.args(["update-index", "-z", "--index-info"]);
        let output = process::run(command, input.as_bytes(), &ProcessLimits::default())?;
        output.printed("update-index").map(drop)
    }

    fn move_head(&self) -> Result<()> {
        match &self.branch {
            Some(branch) => {
                self.create_branch("branch: Created from HEAD")?;
                let switched = self.own.run(&["symbolic-ref", "HEAD", branch]);
                switched.map_err(|error| {
                    match self.own.run(&["update-ref", "-d", branch, &self.new]) {
                        Ok(_) => error,
                        Err(_) => error.with_leftover(&format!("{branch} could not be removed")),
                    }
                })?;
            }
            None => {
                let reason = "commit: test by testwright";
                self.own
                    .run(&["update-ref", "-m", reason, "HEAD", &self.new, &self.old])?;
            }
        }
        Ok(())
    }
}

/// Returns the hash of a commit. The inner error says that the repository does not have it.
pub(super) fn find_commit(git: &Git, revision: &str) -> Accepted<String> {
    let commit = git.object(&format!("{revision}^{{commit}}"))?;
    Ok(commit.ok_or_else(|| match revision {
        "HEAD" => "the repository has no commits".to_owned(),
        _ => format!("the repository does not have the commit {revision}"),
    }))
}

/// Returns the full name of a new branch. The inner error says why it cannot be created.
pub(super) fn new_ref(git: &Git, name: &str) -> Accepted<String> {
    let full_name = format!("refs/heads/{name}");
    if name.starts_with('-') || !is_ref(&full_name) {
        return Ok(Err(format!("`{name}` is not a valid name of a branch")));
    }
    Ok(match git.object(&full_name)? {
        Some(_) => Err(format!("the branch {name} already exists")),
        None => Ok(full_name),
    })
}
