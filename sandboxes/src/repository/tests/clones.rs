//! Tests of repositories that are cloned from a URL into the cache.

use super::*;

#[test]
fn url_is_cloned_once_then_fetched() {
    let place = TestRepository::new();
    let work = place.repository();
    let first = git(&work, &["rev-parse", "HEAD"]);
    let url = format!("file://{}", work.display());
    let source = |revision: Option<&str>| {
        open(&url, revision, &place.cache(), &OpenOptions::default()).and_then(|r| r.source())
    };
    assert_eq!(
        source(None).unwrap().commit.as_deref(),
        Some(first.as_str())
    );
    write(&work, "pkg/b.py", "b = 1\n");
    let second = commit(&work, "second");
    // The head has moved and is followed.
    let moved = source(None).unwrap();
    assert_eq!(moved.commit.as_deref(), Some(second.as_str()));
    assert!(paths(&moved).contains(&"pkg/b.py".to_owned()));
    assert_eq!(
        moved.describe.as_deref().map(|d| d.starts_with("v1.2-1-g")),
        Some(true)
    );
    // No branch contains this commit any more.
    git(&work, &["reset", "-q", "--hard", &first]);
    git(&work, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    git(&work, &["branch", "other"]);
    assert_eq!(source(Some(&second)).unwrap().digest, moved.digest);
    assert_eq!(
        source(Some("other")).unwrap().commit.as_deref(),
        Some(first.as_str())
    );
    assert!(
        source(Some("othre"))
            .unwrap_err()
            .hint
            .unwrap()
            .contains("`other`")
    );
    // If the remote is gone, the cached clone still works with a note.
    std::fs::rename(&work, place.path("away")).unwrap();
    assert!(source(Some(&first)).unwrap().notes.is_empty());
    assert!(source(None).unwrap().notes[0].contains("cache"));
    let offline = OpenOptions {
        offline: true,
        ..OpenOptions::default()
    };
    assert!(open(&url, None, &place.cache(), &offline).is_ok());
    assert!(
        open(
            "file:///not/there",
            None,
            &place.cache(),
            &OpenOptions::default()
        )
        .is_err()
    );
}

#[test]
fn partial_clone_fetches_blobs_for_archive() {
    let place = TestRepository::new();
    let work = place.repository();
    git(&work, &["config", "uploadpack.allowFilter", "true"]);
    git(&work, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", work.display());
    let repository = open(&url, None, &place.cache(), &OpenOptions::default()).unwrap();
    let missing = repository
        .git
        .run(&[
            "rev-list",
            "--objects",
            "--missing=print",
            "--no-object-names",
            "--all",
        ])
        .unwrap();
    assert!(missing.contains('?'), "the clone is not a partial one");
    assert_eq!(
        repository.source().unwrap().digest,
        place.source(&work, None).digest
    );
}

#[test]
fn least_recently_used_clones_are_removed() {
    let place = TestRepository::new();
    let work = place.repository();
    let mut urls = Vec::new();
    for name in ["a", "b", "c"] {
        let copy = place.path(name);
        git(
            &work,
            &["clone", "-q", "--bare", ".", copy.to_str().unwrap()],
        );
        urls.push(format!("file://{}", copy.display()));
    }
    let used = |url: &str| {
        let opened = open(url, None, &place.cache(), &OpenOptions::default());
        opened.unwrap().git.directory.clone().unwrap()
    };
    let clones: Vec<PathBuf> = urls.iter().map(|url| used(url)).collect();
    let age = |clone: &Path, hours: u64| {
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(3600 * hours);
        let lock = std::fs::File::open(clone.with_extension("lock")).unwrap();
        lock.set_modified(time).unwrap();
    };
    age(&clones[0], 40);
    age(&clones[1], 50);
    age(&clones[2], 20);
    let there = || -> Vec<bool> { clones.iter().map(|clone| clone.exists()).collect() };
    make_room_for_clones(&place.cache(), 1 << 30).unwrap();
    assert_eq!(there(), [true, true, true]);
    // A locked clone stays, and so does one used within a day.
    let lock = std::fs::File::open(clones[0].with_extension("lock")).unwrap();
    lock.lock().unwrap();
    make_room_for_clones(&place.cache(), 0).unwrap();
    assert_eq!(there(), [true, false, true]);
    drop(lock);
    // A used clone counts as recent.
    used(&urls[0]);
    make_room_for_clones(&place.cache(), 0).unwrap();
    assert_eq!(there(), [true, false, true]);
    // A removed clone is cloned again.
    assert_eq!(used(&urls[1]), clones[1]);
    assert_eq!(there(), [true, true, true]);
    for clone in &clones {
        age(clone, 30);
    }
    make_room_for_clones(&place.cache(), 0).unwrap();
    assert_eq!(there(), [false, false, false]);
}
