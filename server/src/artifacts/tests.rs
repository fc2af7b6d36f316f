#![allow(clippy::unwrap_used, clippy::field_reassign_with_default)]

use std::time::Duration;

use super::*;

fn store(folder: &tempfile::TempDir) -> Artifacts {
    Artifacts::in_folder(folder.path()).unwrap()
}

async fn content(store: &Artifacts, digest: &Digest) -> Option<Vec<u8>> {
    let parts = store.read(digest).await.unwrap()?;
    Some(parts.try_concat().await.unwrap())
}

#[tokio::test]
async fn a_blob_is_found_by_its_digest_until_it_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    store.check().await.unwrap();
    let blob = store.put(b"abc".to_vec()).await.unwrap();
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!((blob.digest.as_str(), blob.bytes), (digest, 3));
    assert!(folder.path().join("sha256/ba").join(digest).is_file());
    assert_eq!(content(&store, &blob.digest).await.unwrap(), b"abc");
    store.remove(&blob.digest).await.unwrap();
    store.remove(&blob.digest).await.unwrap();
    assert_eq!(content(&store, &blob.digest).await, None);
}

#[tokio::test]
async fn a_large_file_comes_back_and_a_damaged_one_does_not() {
    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = store(&folder);
    let (from, to) = (files.path().join("from"), files.path().join("to"));
    let large: Vec<u8> = (0..12_000_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&from, &large).unwrap();
    let blob = store.put_file(&from).await.unwrap();
    assert_eq!(blob, store.put(large.clone()).await.unwrap());
    assert!(store.fetch(&blob.digest, &to).await.unwrap());
    assert!(std::fs::read(&to).unwrap() == large);

    let digest = blob.digest.as_str();
    let kept = folder.path().join("sha256").join(&digest[..2]).join(digest);
    std::fs::write(kept, b"something else").unwrap();
    let error = store.fetch(&blob.digest, &to).await.unwrap_err();
    assert!(error.with_cause().contains("is damaged"), "{error:?}");
}

#[tokio::test]
async fn environments_that_nobody_fetches_go_with_their_archives() {
    use testwright_sandboxes::environment::SharedEnvironments;

    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = store(&folder);
    let (archive, fetched) = (files.path().join("archive"), files.path().join("fetched"));
    let blobs = || {
        let all = std::fs::read_dir(folder.path().join("sha256")).unwrap();
        all.map(|group| std::fs::read_dir(group.unwrap().path()).unwrap().count())
            .sum::<usize>()
    };
    for content in ["one", "two"] {
        std::fs::write(&archive, content).unwrap();
        SharedEnvironments::put(&store, "env-1", content, &archive)
            .await
            .unwrap();
        // That of the one before is gone.
        assert_eq!(blobs(), 1);
    }
    let record = SharedEnvironments::fetch(&store, "env-1", &fetched).await;
    assert_eq!(record.unwrap().as_deref(), Some("two"));
    assert_eq!(std::fs::read_to_string(&fetched).unwrap(), "two");
    let missing = SharedEnvironments::fetch(&store, "env-2", &fetched).await;
    assert_eq!(missing.unwrap(), None);

    let old = std::time::SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    last_used(&folder, old);
    assert_eq!(store.remove_unused_environments(UNUSED_STAYS).await, Ok(0));
    // It was used just now.
    SharedEnvironments::fetch(&store, "env-1", &fetched)
        .await
        .unwrap();
    let day = Duration::from_secs(24 * 3600);
    assert_eq!(store.remove_unused_environments(day).await, Ok(0));
    last_used(&folder, old);
    assert_eq!(store.remove_unused_environments(day).await, Ok(1));
    assert_eq!(blobs(), 0);
}

fn last_used(folder: &tempfile::TempDir, time: std::time::SystemTime) {
    let entry = folder.path().join("environments/env-1.json");
    let entry = std::fs::File::options().write(true).open(entry).unwrap();
    entry.set_modified(time).unwrap();
}

#[test]
fn an_address_that_names_no_store_is_refused_with_what_may_be_written() {
    for (url, why) in [
        ("ftp://example.org/x", "neither a folder nor a bucket"),
        ("file://artifacts", "not absolute"),
        ("s3:///prefix", "names no bucket"),
    ] {
        let mut settings = Settings::default();
        settings.artifacts = Some(testwright_config::settings::RedactedUrl::new(url));
        let error = Artifacts::of_settings(&settings).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.with_cause().contains(why), "{error:?}");
        assert!(error.hint.unwrap().contains("s3://BUCKET/PREFIX"));
    }
}

#[test]
fn a_digest_is_one() {
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(Digest::parse(digest).is_some());
    for text in ["", "../../etc/passwd", &digest[1..], &digest.to_uppercase()] {
        assert_eq!(Digest::parse(text), None);
    }
}
