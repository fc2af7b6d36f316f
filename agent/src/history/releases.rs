//! The releases of a repository, relative to the commit on which the test was accepted.

use std::collections::{BTreeMap, BTreeSet};

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{Commit, Repository, Tag};

use super::answer::Point;
use super::version::Version;

/// Releases in the order of their versions.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Releases {
    /// Releases that do not contain the base commit and are not newer than it.
    pub older: Vec<Point>,
    /// Releases that contain the base commit, other than the commit itself.
    pub newer: Vec<Point>,
    /// Releases of other branches that are newer than the base commit. They prove nothing about the base's branch.
    pub others: Vec<Point>,
    /// Version of the base commit, if it is a release.
    pub base: Option<String>,
}

impl Releases {
    /// Reads the releases of a repository. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if git cannot list the tags.
    pub(super) fn read(
        repository: &Repository,
        base: &Commit,
        pre_releases: bool,
    ) -> Result<Releases, SandboxError> {
        let containing = repository.tags_containing(&base.hash)?;
        Ok(sorted(repository.tags()?, base, &containing, pre_releases))
    }

    /// Returns all releases.
    pub(super) fn all(&self) -> impl Iterator<Item = &Point> {
        self.older.iter().chain(&self.newer).chain(&self.others)
    }
}

fn sorted(
    tags: Vec<Tag>,
    base: &Commit,
    containing: &BTreeSet<String>,
    pre_releases: bool,
) -> Releases {
    let mut by_prefix: BTreeMap<String, Vec<(Version, Tag)>> = BTreeMap::new();
    for tag in tags {
        if let Some(version) = Version::parse(&tag.name)
            && (pre_releases || !version.is_pre_release())
        {
            let same = by_prefix.entry(version.prefix.clone()).or_default();
            same.push((version, tag));
        }
    }
    // A repository may contain several packages; the main one has most releases.
    let main = by_prefix.into_values().max_by_key(Vec::len);
    let mut tags = main.unwrap_or_default();
    tags.sort_by(|a, b| a.0.cmp(&b.0));
    let mut releases = Releases::default();
    let mut commits = BTreeSet::new();
    for (version, tag) in tags {
        if !commits.insert(tag.commit.clone()) {
            continue;
        }
        let point = Point {
            commit: tag.commit,
            committed: tag.committed,
            name: Some(version.text),
        };
        if point.commit == base.hash {
            releases.base = point.name;
        } else if containing.contains(&tag.name) {
            releases.newer.push(point);
        } else if point.committed <= base.committed {
            releases.older.push(point);
        } else {
            releases.others.push(point);
        }
    }
    releases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(points: &[Point]) -> Vec<&str> {
        points.iter().map(Point::label).collect()
    }

    #[test]
    fn releases_are_sorted_around_base() {
        let base = Commit {
            hash: "base".to_owned(),
            parents: Vec::new(),
            committed: 50,
            message: String::new(),
        };
        let tag = |name: &str, committed: i64| Tag {
            name: name.to_owned(),
            commit: format!("{name}@"),
            committed,
        };
        let tags = vec![
            tag("v1.10", 20),
            tag("v1.9", 10),
            // A release of an old branch, later than 1.10 and before the base.
            tag("v1.9.1", 40),
            tag("v2.0", 60),
            tag("v1.10.1", 70),
            tag("v2.1rc1", 80),
            tag("docs-1.0", 5),
            tag("nightly", 90),
        ];
        let containing = BTreeSet::from(["v2.0".to_owned(), "v2.1rc1".to_owned()]);
        let releases = sorted(tags.clone(), &base, &containing, false);
        assert_eq!(names(&releases.older), ["1.9", "1.9.1", "1.10"]);
        assert_eq!(names(&releases.newer), ["2.0"]);
        assert_eq!(names(&releases.others), ["1.10.1"]);
        assert_eq!(releases.base, None);
        let with_early = sorted(tags, &base, &containing, true);
        assert_eq!(names(&with_early.newer), ["2.0", "2.1rc1"]);
    }
}
