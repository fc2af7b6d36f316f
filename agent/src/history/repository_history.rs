//! The commits and releases of a repository.

use std::collections::BTreeMap;
use std::sync::Arc;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{Commit, CommitRange, Repository};
use tokio::task::JoinError;

use super::answer::Point;
use super::releases::Releases;
use testwright_config::error::{Error, Result};

pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, SandboxError> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let failed = |error: JoinError| Error::infrastructure("read the history").cause(error);
    Ok(done.map_err(failed)??)
}

/// The commits and releases of a repository.
pub(super) struct History {
    pub repository: Arc<Repository>,
    pub releases: Releases,
    pub base: Point,
    /// Newest commit of the branch.
    pub head: Point,
    pub branch: String,
    pub is_shallow: bool,
}

impl History {
    /// Reads the history. Blocks.
    pub(super) fn read(
        repository: Repository,
        branch: Option<&str>,
        base: &str,
        pre_releases: bool,
    ) -> std::result::Result<History, SandboxError> {
        let base = repository.commit_at(base)?;
        let mut head = repository.commit_at(repository.commit().unwrap_or(&base.hash))?;
        let default = match branch {
            Some(branch) => Some((branch.to_owned(), head.hash.clone())),
            None => repository.default_branch()?,
        };
        let branch = match default {
            Some((branch, commit)) => {
                head = repository.commit_at(&commit)?;
                branch
            }
            None => {
                let branches = repository.branches_at(&head.hash)?;
                let usual = ["main", "master"].into_iter();
                let mut usual = usual.filter(|name| branches.contains(*name));
                let first = || branches.first().map(String::as_str);
                usual.next().or_else(first).unwrap_or("HEAD").to_owned()
            }
        };
        let releases = Releases::read(&repository, &base, pre_releases)?;
        Ok(History {
            base: Point {
                name: releases.base.clone(),
                ..point(&base)
            },
            head: Point {
                name: Some(branch.clone()),
                ..point(&head)
            },
            is_shallow: repository.is_shallow()?,
            repository: Arc::new(repository),
            releases,
            branch,
        })
    }

    /// Returns the versions of releases, by commit.
    pub(super) fn names(&self) -> BTreeMap<String, String> {
        let points = self.releases.all().chain([&self.base]);
        let named = points.filter_map(|point| Some((point.commit.clone(), point.name.clone()?)));
        named.collect()
    }

    /// Returns the commits of the branch that ends at `end`, oldest first: those that are not in the history of `start`,
    /// and the commit before them.
    pub(super) async fn commits_between(
        &self,
        start: Option<&Point>,
        end: &Point,
    ) -> Result<Vec<Point>> {
        let repository = self.repository.clone();
        let range = CommitRange {
            tip: end.commit.clone(),
            base: start.map(|start| start.commit.clone()),
            first_parent: true,
            ..CommitRange::default()
        };
        run_blocking(move || {
            let mut commits = repository.commits(&range)?;
            commits.reverse();
            let fork = commits.first().and_then(|first| first.parents.first());
            let fork = fork.map(|fork| repository.commit_at(fork)).transpose()?;
            Ok(fork.iter().chain(&commits).map(point).collect())
        })
        .await
    }

    /// Returns the commits of the branch that a merge added to `last`, oldest first, and the commit before them. There are
    /// none if the commit is no merge.
    pub(super) async fn merged_commits(&self, last: &Point, merge: &Point) -> Result<Vec<Point>> {
        let (repository, hash) = (self.repository.clone(), merge.commit.clone());
        let tip = run_blocking(move || {
            let merged = repository.commit_at(&hash)?.parents.into_iter().nth(1);
            merged.map(|tip| repository.commit_at(&tip)).transpose()
        });
        match tip.await? {
            Some(tip) => self.commits_between(Some(last), &point(&tip)).await,
            None => Ok(Vec::new()),
        }
    }
}

fn point(commit: &Commit) -> Point {
    Point {
        commit: commit.hash.clone(),
        committed: commit.committed,
        name: None,
    }
}
