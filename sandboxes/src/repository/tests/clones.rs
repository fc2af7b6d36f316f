//! Repositories at an address, cloned into the cache.

use super::*;

#[test]
fn a_url_is_cloned_once_and_fetched_again_for_what_is_new() {
    let place = Place::new();
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
    // The head moved, and is followed.
    let moved = source(None).unwrap();
    assert_eq!(moved.commit.as_deref(), Some(second.as_str()));
    assert!(paths(&moved).contains(&"pkg/b.py".to_owned()));
    assert_eq!(
        moved.describe.as_deref().map(|d| d.starts_with("v1.2-1-g")),
        Some(true)
    );
    // A commit that no branch holds any more.
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
    // Gone: what is known still works, and says so.
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
fn a_clone_without_blobs_gets_them_for_the_archive() {
    let place = Place::new();
    let work = place.repository();
    git(&work, &["config", "uploadpack.allowFilter", "true"]);
    git(&work, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", work.display());
    let repository = open(&url, None, &place.cache(), &OpenOptions::default()).unwrap();
    let missing = repository
        .git
        .run([
            "rev-list",
            "--objects",
            "--missing=print",
            "--no-object-names",
            "--all",
        ])
        .unwrap();
    assert!(
        String::from_utf8_lossy(&missing).contains('?'),
        "the clone is not a partial one"
    );
    assert_eq!(
        repository.source().unwrap().digest,
        place.source(&work, None).digest
    );
}
