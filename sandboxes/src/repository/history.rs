//! The history of a repository: its commits, their changes, and the patches between two commits.
//!
//! Renames are reported as a deletion and an addition, and hashes are complete. So the same commits give the same
//! bytes, whatever else the repository contains.

use std::collections::BTreeSet;

use super::Repository;
use super::clone::{self, fetch_blobs};
use super::revision::resolve;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// A commit without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Full object name, in hex digits.
    pub hash: String,
    /// Object names of the parents; empty for a root commit.
    pub parents: Vec<String>,
    /// Time of the commit (not of its author), in seconds since 1970.
    pub committed: i64,
    /// Whole message, without trailing whitespace.
    pub message: String,
}

impl Commit {
    /// Returns the first line of the message.
    pub fn title(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// A range of commits: all ancestors of `tip` that are not ancestors of `base`, newest first.
#[derive(Debug, Clone, Default)]
pub struct CommitRange {
    /// Revision at which the range ends, e.g. an object name.
    pub tip: String,
    /// Revision that is excluded with its ancestors; `None` for the whole history.
    pub base: Option<String>,
    /// Whether to follow only the first parent of a merge, that is, the branch itself.
    pub first_parent: bool,
    /// Earliest commit time in seconds since 1970, inclusive.
    pub since: Option<i64>,
    /// Latest commit time in seconds since 1970, exclusive.
    pub until: Option<i64>,
}

/// A tag that leads to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Name without `refs/tags/`.
    pub name: String,
    /// Full object name of the commit, in hex digits.
    pub commit: String,
    /// Time of the commit in seconds since 1970.
    pub committed: i64,
}

/// A path that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path relative to the root of the repository.
    pub path: String,
    /// Whether the path is new.
    pub added: bool,
    /// Whether the path was deleted.
    pub deleted: bool,
    /// Whether the path is a submodule in one of the commits or both.
    pub submodule: bool,
}

/// Format of `git log` that [`commit`] parses.
const COMMIT_FORMAT: &str = "--format=tformat:%H%n%P%n%ct%n%B";

/// Mode of a submodule's pointer.
const SUBMODULE: &str = "160000";

/// Reads attributes from the empty tree. Versions of git differ in whether attributes in a bare repository affect
/// diffs.
const NO_ATTRIBUTES: &str = "attr.tree=4b825dc642cb6eb9a060e54bf8d69288fbee4904";

impl Repository {
    /// Returns the commits of a range.
    ///
    /// # Errors
    ///
    /// Fails if git does not know a commit of the range or cannot be run.
    pub fn commits(&self, range: &CommitRange) -> Result<Vec<Commit>> {
        let mut words = ["log", "-z", COMMIT_FORMAT].map(str::to_owned).to_vec();
        if range.first_parent {
            words.push("--first-parent".to_owned());
        }
        words.extend(range.since.map(|since| format!("--max-age={since}")));
        let until = range.until.map(|until| until.saturating_sub(1));
        words.extend(until.map(|until| format!("--min-age={until}")));
        words.push(range.tip.clone());
        words.extend(range.base.as_ref().map(|base| format!("^{base}")));
        words.push("--".to_owned());
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let text = self.git.run(&words)?;
        let records = text.split('\0').filter(|record| !record.trim().is_empty());
        records.map(commit).collect()
    }

    /// Returns one commit.
    ///
    /// # Errors
    ///
    /// Fails if git does not know the commit or cannot be run.
    pub fn commit_at(&self, hash: &str) -> Result<Commit> {
        commit(&self.git.run(&["log", "-1", COMMIT_FORMAT, hash, "--"])?)
    }

    /// Returns the tags that lead to commits, sorted by name.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run, or an object of a tag is missing.
    pub fn tags(&self) -> Result<Vec<Tag>> {
        // A lightweight tag is a commit; an annotated one is an object that leads to it (`*`).
        let format = "--format=%(refname:strip=2)%00%(objecttype)%00%(objectname)%00%(committerdate:unix)\
                      %00%(*objecttype)%00%(*objectname)%00%(*committerdate:unix)";
        let text = self.git.run(&["for-each-ref", format, "refs/tags"])?;
        let tags = text.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split('\0').collect();
            let (commit, committed) = match fields[..] {
                [_, "commit", commit, time, ..] | [.., "commit", commit, time] => (commit, time),
                _ => return None,
            };
            Some(Tag {
                name: fields[0].to_owned(),
                commit: commit.to_owned(),
                committed: committed.parse().ok()?,
            })
        });
        Ok(tags.collect())
    }

    /// Returns the names of the tags whose history contains a commit.
    ///
    /// # Errors
    ///
    /// Fails if git does not know the commit or cannot be run.
    pub fn tags_containing(&self, commit: &str) -> Result<BTreeSet<String>> {
        self.ref_names(["--contains", commit, "refs/tags"])
    }

    /// Returns the default branch: that of the remote `origin`, otherwise `main` or `master`. Returns its name and its
    /// newest commit. `None` means that the head is the default: the repository has no such branch, or it was cloned
    /// from a URL.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run.
    pub fn default_branch(&self) -> Result<Option<(String, String)>> {
        if resolve(&self.git, clone::HEAD)?.is_some() {
            return Ok(None);
        }
        let origin = "refs/remotes/origin/HEAD";
        let words = ["symbolic-ref", "--quiet", "--short", origin];
        let remote = self.git.line(&words)?;
        let usual = ["main", "master"].map(str::to_owned);
        for name in remote.into_iter().chain(usual) {
            if let Some(commit) = resolve(&self.git, &name)? {
                return Ok(Some((name, commit)));
            }
        }
        Ok(None)
    }

    /// Returns the names of the local branches that end at a commit.
    ///
    /// # Errors
    ///
    /// Fails if git does not know the commit or cannot be run.
    pub fn branches_at(&self, commit: &str) -> Result<BTreeSet<String>> {
        self.ref_names(["--points-at", commit, "refs/heads"])
    }

    fn ref_names(&self, selection: [&str; 3]) -> Result<BTreeSet<String>> {
        let words = ["for-each-ref", "--format=%(refname:strip=2)"];
        let text = self.git.run(&[&words[..], &selection].concat())?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns whether older commits are missing because the repository is a shallow clone.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run.
    pub fn is_shallow(&self) -> Result<bool> {
        let answer = self.git.line(&["rev-parse", "--is-shallow-repository"])?;
        Ok(answer.as_deref() == Some("true"))
    }

    /// Returns the differences between two commits, by path.
    ///
    /// # Errors
    ///
    /// Fails if git cannot compare the commits.
    pub fn changes(&self, old: &str, new: &str) -> Result<Vec<FileChange>> {
        let form = ["-r", "-z", "--raw", "--no-renames", "--abbrev=4"];
        let words = [&["diff-tree"][..], &form, &[old, new, "--"]].concat();
        let text = self.git.run(&words)?;
        let mut fields = text.split('\0');
        let mut changes = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let mut words = about.trim_start_matches(':').split(' ');
            let modes = [words.next(), words.next()];
            let status = about.rsplit(' ').next().unwrap_or_default();
            changes.push(FileChange {
                path: path.to_owned(),
                added: status == "A",
                deleted: status == "D",
                submodule: modes.contains(&Some(SUBMODULE)),
            });
        }
        Ok(changes)
    }

    /// Returns the patch of these paths from one commit to another, for `git apply`. Returns `None` if it is not valid
    /// UTF-8.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be fetched, the repository is a partial clone that lacks them, or git fails.
    pub fn patch(&self, old: &str, new: &str, paths: &[&str]) -> Result<Option<String>> {
        if paths.is_empty() {
            return Ok(Some(String::new()));
        }
        for commit in [old, new] {
            fetch_blobs(&self.git, &format!("{commit}^{{tree}}"))?;
        }
        let words = ["-c", NO_ATTRIBUTES, "--literal-pathspecs", "diff-tree"];
        let form = ["-r", "-p", "--binary", "--full-index", "--no-renames"];
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv"];
        let all = [&words[..], &form, &plain, &[old, new, "--"], paths].concat();
        let output = self.git.try_run(&all, b"")?;
        if !output.ok && self.partial {
            let message = format!("the repository is a partial clone that lacks files of {new}");
            return Err(SandboxError::input(message).hint("use its URL, or a complete clone"));
        }
        Ok(String::from_utf8(output.printed("diff-tree")?).ok())
    }

    /// Returns a file of a commit, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be fetched or git cannot be run.
    pub fn file_at(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>> {
        fetch_blobs(&self.git, &format!("{commit}^{{tree}}"))?;
        let name = format!("{commit}:{path}");
        let read = self.git.try_run(&["cat-file", "blob", &name], b"")?;
        Ok(read.ok.then_some(read.stdout))
    }

    /// Returns the names of files and folders in the root of a commit.
    ///
    /// # Errors
    ///
    /// Fails if git cannot list the commit.
    pub fn root_entries(&self, commit: &str) -> Result<Vec<String>> {
        let text = self.git.run(&["ls-tree", "-z", "--name-only", commit])?;
        let names = text.split('\0').filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }
}

fn commit(record: &str) -> Result<Commit> {
    let mut parts = record.splitn(4, '\n');
    let (hash, parents, time) = (parts.next(), parts.next(), parts.next());
    let committed = time.and_then(|time| time.parse().ok());
    match (hash, parents, committed) {
        (Some(hash), Some(parents), Some(committed)) => Ok(Commit {
            hash: hash.to_owned(),
            parents: parents.split_whitespace().map(str::to_owned).collect(),
            committed,
            message: parts.next().unwrap_or_default().trim_end().to_owned(),
        }),
        _ => Err(SandboxError::input(
            "git log: its output contains an invalid commit",
        )),
    }
}
