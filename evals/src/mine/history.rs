//! Changes that entered a branch: merges of pull requests, and direct commits.
//!
//! A merge without a pull request brings in another branch, whose changes are read one by one.

use std::collections::BTreeSet;

use testwright_sandboxes::Pattern;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{Commit, CommitRange, Repository};

use super::Selection;

/// A change: the commit that introduced it, on top of `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub commit: Commit,
    /// First parent of the commit.
    pub base: String,
    pub pull_request: Option<u64>,
}

/// Maximum nesting of merged branches.
const MAX_MERGE_DEPTH: usize = 4;
/// Maximum commits of a pull request whose messages are read.
const MESSAGES: usize = 250;

impl Change {
    fn from_commit(commit: Commit) -> Option<Change> {
        Some(Change {
            base: commit.parents.first()?.clone(),
            pull_request: pull_request(&commit.message),
            commit,
        })
    }

    fn is_merge(&self) -> bool {
        self.commit.parents.len() > 1
    }

    /// Returns `owner__name-123` with the pull request's number, or the commit's hash if no number is known.
    pub(super) fn id(&self, repo: &str) -> String {
        match self.pull_request {
            Some(number) => format!("{}-{number}", repo.replacen('/', "__", 1)),
            None => self.id_by_hash(repo),
        }
    }

    pub(super) fn id_by_hash(&self, repo: &str) -> String {
        let hash = &self.commit.hash[..self.commit.hash.len().min(10)];
        format!("{}-{hash}", repo.replacen('/', "__", 1))
    }

    /// Returns whether the change reverts an earlier one, and so does not fix the issues it names.
    pub(super) fn is_revert(&self) -> bool {
        let title = self.commit.title().to_lowercase();
        title.starts_with("revert") || self.commit.message.contains("This reverts commit")
    }

    /// Returns the message of the commit, and the messages of the commits it merges.
    pub(super) fn messages(&self, repository: &Repository) -> Result<Vec<String>, SandboxError> {
        let mut messages = vec![self.commit.message.clone()];
        if let [first, second, ..] = self.commit.parents.as_slice() {
            let range = CommitRange {
                tip: second.clone(),
                base: Some(first.clone()),
                ..CommitRange::default()
            };
            let brought = repository.commits(&range)?;
            messages.extend(brought.into_iter().take(MESSAGES).map(|c| c.message));
        }
        Ok(messages)
    }
}

/// Returns the changes in the requested time, oldest first.
pub(super) fn changes(
    repository: &Repository,
    selection: &Selection,
) -> Result<Vec<Change>, SandboxError> {
    let mut changes = Vec::new();
    let mut seen_hashes = BTreeSet::new();
    let mut ranges = vec![(selection.head.clone(), None, 0)];
    while let Some((tip, base, depth)) = ranges.pop() {
        let commits = repository.commits(&CommitRange {
            tip,
            base,
            first_parent: true,
            since: Some(selection.since),
            until: selection.until,
        })?;
        for change in commits.into_iter().filter_map(Change::from_commit) {
            if !seen_hashes.insert(change.commit.hash.clone()) {
                continue;
            }
            if change.is_merge() && change.pull_request.is_none() {
                if depth < MAX_MERGE_DEPTH {
                    let others = change.commit.parents.iter().skip(1);
                    let base = Some(change.base.clone());
                    ranges.extend(others.map(|tip| (tip.clone(), base.clone(), depth + 1)));
                }
                continue;
            }
            changes.push(change);
        }
    }
    changes.sort_by_key(|change| (change.commit.committed, change.commit.hash.clone()));
    Ok(changes)
}

/// Parses the number in GitHub's format: `Merge pull request #1 from …`, or at the end of a squashed commit's title.
fn pull_request(message: &str) -> Option<u64> {
    static NUMBER: Pattern =
        Pattern::new(r"^Merge (?:pull request|PR) #(\d+)\b|^[^\n]*\(#(\d+)\)\s*(?:\n|$)");
    let captures = NUMBER.captures(message)?;
    let number = captures.get(1).or(captures.get(2))?;
    number.as_str().parse().ok()
}

#[cfg(test)]
mod tests;
