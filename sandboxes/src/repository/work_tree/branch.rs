//! A branch with a commit of a patch, and its push to a remote. The files, the index and HEAD stay as they are.
//!
//! A push starts from an isolated copy of the git folder. So it uses the user's configuration and credential helpers,
//! but only the address of the remote from the repository's own configuration.

use super::commit::{PreparedCommit, find_commit, new_ref};
use super::{Placement, WorkTree, plain_paths};
use crate::error::SandboxError;
use crate::repository::accepted::{Accepted, accepted};
use crate::repository::address::{protocols, split_credentials};
use crate::repository::config::Config;
use crate::repository::discover::{GitFolder, is_hash, is_ref};
use crate::repository::git::{Credential, Git, Remote, failed};
use crate::repository::isolated_repository::isolate;
use crate::repository::patch::check_text;
use crate::sandbox::Result;

/// A branch to create.
#[derive(Debug, Clone, Copy)]
pub struct NewBranch<'a> {
    /// Name of the branch.
    pub name: &'a str,
    /// Hash of the commit on which its first commit is created.
    pub base: &'a str,
    /// Message of its first commit.
    pub message: &'a str,
}

/// A remote to push to.
#[derive(Debug, Clone)]
pub struct PushRemote {
    name: String,
    url: String,
    credential: Option<Credential>,
}

impl PushRemote {
    /// Returns the name in the repository's configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address, without credentials.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl WorkTree {
    /// Returns the remote of this name; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the configuration of the repository cannot be read.
    pub fn remote(&self, name: &str) -> Result<Option<PushRemote>> {
        let Some(git) = self.git.as_ref().filter(|_| is_ref(&tracking_refs(name))) else {
            return Ok(None);
        };
        let config = Config::read(&git.common)?;
        let value = |key: &str| config.get(&format!("remote.{name}.{key}"));
        let url = value("pushurl").or_else(|| value("url"));
        Ok(url.map(|url| {
            let (url, credential) = split_credentials(url, None);
            PushRemote {
                name: name.to_owned(),
                url,
                credential,
            }
        }))
    }

    /// Checks whether a branch of this name can be created. The inner error says why not.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read.
    pub fn check_new_branch(&self, name: &str) -> Accepted<()> {
        let scratch = tempfile::tempdir()?;
        let isolated = isolate(self.git_folder()?, scratch.path(), false)?;
        Ok(new_ref(&isolated.git, name)?.map(drop))
    }

    /// Checks whether a commit is in the repository, and in a branch that was fetched from the remote. Otherwise a push
    /// would publish more than a new commit on top of it. The inner error says why not.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read.
    pub fn check_is_on_remote(&self, commit: &str, remote: &PushRemote) -> Accepted<()> {
        if !is_hash(commit) {
            return Ok(Err(format!("`{commit}` is not the hash of a commit")));
        }
        let scratch = tempfile::tempdir()?;
        let isolated = isolate(self.git_folder()?, scratch.path(), false)?;
        accepted!(find_commit(&isolated.git, commit)?);
        let (name, contains) = (&remote.name, format!("--contains={commit}"));
        let refs = tracking_refs(name);
        let listed = isolated
            .git
            .line(&["for-each-ref", "--count=1", &contains, &refs])?;
        Ok(match listed {
            Some(_) => Ok(()),
            None => Err(format!(
                "no branch that was fetched from {name} contains the commit {commit}"
            )),
        })
    }

    /// Returns a work tree without git, in a temporary folder. It has only the files that the patch touches, as they
    /// are in a commit.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read, or a file cannot be written.
    pub fn files_at(&self, commit: &str, patch: &str) -> Result<WorkTree> {
        let scratch = tempfile::tempdir()?;
        let isolated = isolate(self.git_folder()?, scratch.path(), false)?;
        let folder = tempfile::tempdir()?;
        for path in plain_paths(patch) {
            let blob = format!("{commit}:{path}");
            let output = isolated.git.try_run(&["cat-file", "blob", &blob], b"")?;
            // The patch creates files that the commit does not have.
            if output.ok {
                let file = folder.path().join(&path);
                if let Some(parent) = file.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                std::fs::write(file, output.stdout)?;
            }
        }
        Ok(WorkTree {
            root: folder.path().canonicalize()?,
            prefix: String::new(),
            git: None,
            _temporary: Some(folder),
        })
    }

    /// Creates a branch with a commit of a patch, and does not switch to it. Returns the hash of the commit. The inner
    /// error says why nothing was done.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run, the patch does not apply, or git cannot change the repository. There is no branch
    /// then.
    pub fn create_branch(&self, branch: NewBranch<'_>, patch: &str) -> Accepted<String> {
        accepted!(check_text(patch));
        let placement = Placement {
            branch: Some(branch.name),
            message: Some(branch.message),
        };
        let (git, paths) = (self.git_folder()?, plain_paths(patch));
        let prepared = PreparedCommit::new(git, &self.root, paths, patch, placement, branch.base)?;
        let prepared = accepted!(prepared);
        let Some(commit) = prepared.commit() else {
            return Ok(Err("the patch changes nothing".to_owned()));
        };
        prepared.create_branch("branch: Created by testwright")?;
        Ok(Ok(commit))
    }

    /// Deletes a branch that was created, if it still is at this commit.
    ///
    /// # Errors
    ///
    /// Fails if git cannot change the repository, or if the branch has moved.
    pub fn delete_branch(&self, name: &str, commit: &str) -> Result<()> {
        let own = Git::at(&self.git_folder()?.own)?;
        own.run(&["update-ref", "-d", &format!("refs/heads/{name}"), commit])?;
        Ok(())
    }

    /// Pushes a commit to a new branch of a remote. The inner error is the reason of the remote or of git.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run, or has no protocol for the address.
    pub fn push(&self, remote: &PushRemote, branch: &str, commit: &str) -> Accepted<()> {
        self.push_ref(remote, branch, "", commit)
    }

    /// Deletes a branch of a remote that was pushed, if it still is at this commit. The inner error is the reason of
    /// the remote or of git.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run, or has no protocol for the address.
    pub fn delete_pushed(&self, remote: &PushRemote, branch: &str, commit: &str) -> Accepted<()> {
        self.push_ref(remote, branch, commit, "")
    }

    /// Sets a branch of a remote. An empty commit stands for a branch that does not exist.
    fn push_ref(&self, remote: &PushRemote, branch: &str, old: &str, new: &str) -> Accepted<()> {
        let scratch = tempfile::tempdir()?;
        let isolated = isolate(self.git_folder()?, scratch.path(), false)?;
        let git = Git {
            remote: Remote {
                protocols: protocols(&remote.url)?.to_owned(),
                credential: remote.credential.clone(),
                uses_helpers: true,
                stands_for: None,
            },
            ..isolated.git.clone()
        };
        let full_name = format!("refs/heads/{branch}");
        // Without a lease, a push would also move an existing branch that is behind the commit.
        let lease = format!("--force-with-lease={full_name}:{old}");
        let update = format!("{new}:{full_name}");
        let output = git.push(&[lease.as_str(), "--", &remote.url, &update])?;
        Ok(match output.ok {
            true => Ok(()),
            false if old.is_empty() && output.stderr.contains("(stale info)") => {
                Err(format!("{} already has the branch {branch}", remote.name))
            }
            false => Err(rejection(&output.stderr)),
        })
    }

    fn git_folder(&self) -> Result<&GitFolder> {
        self.git.as_ref().ok_or_else(|| {
            let text = format!("{} is not a git repository", self.root.display());
            SandboxError::input(text)
        })
    }
}

/// Returns the prefix of the refs with the branches that were fetched from a remote.
fn tracking_refs(remote: &str) -> String {
    format!("refs/remotes/{remote}")
}

/// Returns why a push failed: the remote's status of the branch if there is one, otherwise git's error.
fn rejection(stderr: &str) -> String {
    let mut lines = stderr.lines().map(str::trim_start);
    let status = lines.find(|line| line.starts_with("! ["));
    let reason = status.and_then(|line| Some(line.rsplit_once('(')?.1.trim_end_matches(')')));
    match reason {
        Some(reason) => format!("the remote rejected the branch: {reason}"),
        None => failed("push", stderr).message,
    }
}
