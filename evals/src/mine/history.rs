//! Changes that came into a branch: pull requests' merges, and commits of their own.
//!
//! A merge that is no pull request's brings another branch; the changes of that branch came in one by one, and are read so.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{Commit, CommitRange, Repository};

use super::Selection;

/// One change: the commit that brought it, on the code of `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub commit: Commit,
    /// Its first parent.
    pub base: String,
    pub pull_request: Option<u64>,
}

/// Branches that are brought by branches.
const MAX_MERGE_DEPTH: usize = 4;
/// Commits of one pull request whose messages are read.
const MESSAGES: usize = 250;

impl Change {
    fn of(commit: Commit) -> Option<Change> {
        Some(Change {
            base: commit.parents.first()?.clone(),
            pull_request: pull_request(&commit.message),
            commit,
        })
    }

    fn is_merge(&self) -> bool {
        self.commit.parents.len() > 1
    }

    /// `owner__name-123`, by the pull request or, where none is known, the commit.
    pub fn id(&self, repo: &str) -> String {
        match self.pull_request {
            Some(number) => format!("{}-{number}", repo.replacen('/', "__", 1)),
            None => self.id_by_hash(repo),
        }
    }

    pub fn id_by_hash(&self, repo: &str) -> String {
        let hash = &self.commit.hash[..self.commit.hash.len().min(10)];
        format!("{}-{hash}", repo.replacen('/', "__", 1))
    }

    /// It takes an earlier change back: what it names was not fixed by it.
    pub fn is_revert(&self) -> bool {
        let title = self.commit.title().to_lowercase();
        title.starts_with("revert") || self.commit.message.contains("This reverts commit")
    }

    /// Its message, and those of the commits that it brings.
    pub fn messages(&self, repository: &Repository) -> Result<Vec<String>, SandboxError> {
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

/// The changes of the wanted time, oldest first.
pub fn changes(
    repository: &Repository,
    selection: &Selection,
) -> Result<Vec<Change>, SandboxError> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut ranges = vec![(selection.head.clone(), None, 0)];
    while let Some((tip, base, depth)) = ranges.pop() {
        let commits = repository.commits(&CommitRange {
            tip,
            base,
            first_parent: true,
            since: Some(selection.since),
            until: selection.until,
        })?;
        for change in commits.into_iter().filter_map(Change::of) {
            if !seen.insert(change.commit.hash.clone()) {
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
            found.push(change);
        }
    }
    found.sort_by_key(|change| (change.commit.committed, change.commit.hash.clone()));
    Ok(found)
}

/// As GitHub writes it: `Merge pull request #1 from …`, or at the end of a squashed commit's title.
fn pull_request(message: &str) -> Option<u64> {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^Merge (?:pull request|PR) #(\d+)\b|^[^\n]*\(#(\d+)\)\s*(?:\n|$)").ok()
    });
    let found = NUMBER.as_ref()?.captures(message)?;
    let number = found.get(1).or(found.get(2))?;
    number.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_are_known_by_merges_and_by_squashed_titles() {
        for (message, number) in [
            ("Merge pull request #14 from a/b\n\nFix #3", Some(14)),
            ("fix(parser): keep it (#8240)\n\ncloses #3", Some(8240)),
            ("Fix parsing of help (#3678) \n", Some(3678)),
            ("Merge branch 'stable'", None),
            ("Fix #12 (see #13)", None),
            ("Fix it\n\nAs said (#13)", None),
        ] {
            assert_eq!(pull_request(message), number, "{message}");
        }
    }
}
