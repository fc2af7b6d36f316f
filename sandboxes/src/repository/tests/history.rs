//! Tests of a repository's history.

use super::*;

fn range(tip: &str) -> CommitRange {
    CommitRange {
        tip: tip.to_owned(),
        ..CommitRange::default()
    }
}

#[test]
fn history_lists_commits_and_changes() {
    let place = TestRepository::new();
    let work = place.repository();
    let first = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["switch", "-q", "-c", "topic"]);
    write(&work, "pkg/b.py", "b = 1\n");
    write(&work, "pkg/[b].py", "b = 2\n");
    let brought = commit(&work, "bring b\n\nIn \u{e4} body.");
    git(&work, &["switch", "-q", "main"]);
    git(&work, &["merge", "-q", "--no-ff", "-m", "merge", "topic"]);
    let merge = git(&work, &["rev-parse", "HEAD"]);
    let pointer = format!("160000,{},libs/other", "1".repeat(40));
    git(&work, &["update-index", "--add", "--cacheinfo", &pointer]);
    git(&work, &["rm", "-q", "run.sh"]);
    git(&work, &["commit", "-q", "-m", "last"]);
    let last = git(&work, &["rev-parse", "HEAD"]);

    let repository = place.open(&work, None).unwrap();
    let hashes = |range: &CommitRange| -> Vec<String> {
        let commits = repository.commits(range).unwrap();
        commits.into_iter().map(|commit| commit.hash).collect()
    };
    let line = CommitRange {
        first_parent: true,
        ..range(&last)
    };
    assert_eq!(hashes(&line), [&last, &merge, &first].map(Clone::clone));
    let side = CommitRange {
        base: Some(first.clone()),
        ..range(&brought)
    };
    let commits = repository.commits(&side).unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0].message, "bring b\n\nIn \u{e4} body.");
    assert_eq!(commits[0].title(), "bring b");
    assert_eq!(commits[0].parents, std::slice::from_ref(&first));
    // All commits were made in the same second.
    let time = commits[0].committed;
    let since = CommitRange {
        since: Some(time),
        ..line.clone()
    };
    assert_eq!(hashes(&since).len(), 3);
    let until = CommitRange {
        until: Some(time),
        ..line
    };
    assert_eq!(hashes(&until).len(), 0);

    let changes = repository.changes(&merge, &last).unwrap();
    let summaries: Vec<_> = changes
        .iter()
        .map(|c| (c.path.as_str(), c.added, c.deleted, c.submodule))
        .collect();
    assert_eq!(
        summaries,
        [
            ("libs/other", true, false, true),
            ("run.sh", false, true, false)
        ]
    );
    // Paths are literal names, not patterns.
    let patch = repository.patch(&first, &merge, &["pkg/[b].py"]);
    let patch = patch.unwrap().unwrap();
    assert!(
        patch.contains("+b = 2") && !patch.contains("+b = 1"),
        "{patch}"
    );
    assert_eq!(repository.file_at(&last, "run.sh").unwrap(), None);
    assert!(repository.file_at(&merge, "run.sh").unwrap().is_some());
    let entries = repository.root_entries(&last).unwrap();
    assert!(entries.contains(&"pkg".to_owned()), "{entries:?}");
}

#[test]
fn tags_and_branches_lead_to_commits() {
    let place = TestRepository::new();
    let work = place.repository();
    git(&work, &["tag", "v2.0"]);
    git(&work, &["tag", "tree", "HEAD^{tree}"]);
    let first = git(&work, &["rev-parse", "HEAD"]);
    write(&work, "pkg/b.py", "b = 1\n");
    let second = commit(&work, "second");
    git(&work, &["tag", "-a", "-m", "annotated", "v2.1"]);
    let url = format!("file://{}", work.display());
    let clone = open(&url, None, &place.cache(), &OpenOptions::default()).unwrap();
    for repository in [place.open(&work, None).unwrap(), clone] {
        let committed = repository.commit_at(&first).unwrap().committed;
        let tags = repository.tags().unwrap();
        let tag = |name: &str| tags.iter().find(|tag| tag.name == name).cloned();
        let expected = |name: &str, commit: &String| Tag {
            name: name.to_owned(),
            commit: commit.clone(),
            committed,
        };
        assert_eq!(tag("v2.0"), Some(expected("v2.0", &first)));
        assert_eq!(tag("v2.1"), Some(expected("v2.1", &second)));
        assert_eq!(tag("tree"), None);
        let containing = repository.tags_containing(&second).unwrap();
        assert_eq!(containing, BTreeSet::from(["v2.1".to_owned()]));
        let branches = repository.branches_at(&second).unwrap();
        assert_eq!(branches, BTreeSet::from(["main".to_owned()]));
        assert_eq!(repository.branches_at(&first).unwrap(), BTreeSet::new());
        assert!(!repository.is_shallow().unwrap());
    }
    let shallow = place.path("shallow");
    git(
        &work,
        &[
            "clone",
            "-q",
            "--depth",
            "1",
            &url,
            shallow.to_str().unwrap(),
        ],
    );
    assert!(place.open(&shallow, None).unwrap().is_shallow().unwrap());
}

#[test]
fn default_branch_does_not_depend_on_head() {
    let place = TestRepository::new();
    let work = place.repository();
    let first = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["switch", "-q", "-c", "topic"]);
    write(&work, "pkg/b.py", "b = 1\n");
    let second = commit(&work, "second");
    let default = || place.open(&work, None).unwrap().default_branch().unwrap();
    assert_eq!(default(), Some(("main".to_owned(), first)));
    let url = format!("file://{}", work.display());
    let clone = open(&url, None, &place.cache(), &OpenOptions::default()).unwrap();
    assert_eq!(clone.default_branch().unwrap(), None);
    assert_eq!(clone.commit(), Some(second.as_str()));
    let (origin, trunk) = ("refs/remotes/origin/HEAD", "refs/remotes/origin/trunk");
    git(&work, &["update-ref", trunk, &second]);
    git(&work, &["symbolic-ref", origin, trunk]);
    assert_eq!(default(), Some(("origin/trunk".to_owned(), second)));
}

/// Cached clones are created without the content of files.
#[test]
fn clone_patches_match_origin() {
    let place = TestRepository::new();
    let work = place.repository();
    let first = git(&work, &["rev-parse", "HEAD"]);
    write(&work, "pkg/__init__.py", "__version__ = '1.3'\n");
    let second = commit(&work, "second");
    write(&work, "pkg/__init__.py", "__version__ = '1.4'\n");
    commit(&work, "third");
    let url = format!("file://{}", work.display());
    let clone = open(&url, None, &place.cache(), &OpenOptions::default()).unwrap();
    let here = place.open(&work, None).unwrap();
    let paths = ["pkg/__init__.py"];
    let patch = clone.patch(&first, &second, &paths).unwrap().unwrap();
    assert!(patch.contains("+__version__ = '1.3'"), "{patch}");
    assert_eq!(here.patch(&first, &second, &paths).unwrap(), Some(patch));
    let text = clone.file_at(&second, "pkg/__init__.py").unwrap();
    assert_eq!(text.unwrap(), b"__version__ = '1.3'\n");
}
