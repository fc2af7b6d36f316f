#![allow(clippy::unwrap_used, clippy::field_reassign_with_default)]

use std::time::Duration;

use super::*;
use testwright_config::error::Kind;

fn store(folder: &tempfile::TempDir) -> Artifacts {
    Artifacts::in_folder(folder.path()).unwrap()
}

async fn content(store: &Artifacts, digest: &Digest) -> Option<Vec<u8>> {
    let parts = store.read(digest).await.unwrap()?;
    Some(parts.try_concat().await.unwrap())
}

#[tokio::test]
async fn blob_is_readable_until_removed() {
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
async fn damaged_file_is_not_fetched() {
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
    let blob_path = folder.path().join("sha256").join(&digest[..2]).join(digest);
    std::fs::write(blob_path, b"something else").unwrap();
    let error = store.fetch(&blob.digest, &to).await.unwrap_err();
    assert!(error.with_cause().contains("is damaged"), "{error:?}");
}

#[tokio::test]
async fn unused_environments_are_removed_with_archives() {
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
        SharedEnvironments::publish(&store, "env-1", content, &archive)
            .await
            .unwrap();
        // The archive of the earlier environment was removed.
        assert_eq!(blobs(), 1);
    }
    let record = SharedEnvironments::fetch(&store, "env-1", &fetched).await;
    assert_eq!(record.unwrap().as_deref(), Some("two"));
    assert_eq!(std::fs::read_to_string(&fetched).unwrap(), "two");
    let missing = SharedEnvironments::fetch(&store, "env-2", &fetched).await;
    assert_eq!(missing.unwrap(), None);

    let old = std::time::SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    last_used(&folder, old);
    assert_eq!(
        store.remove_unused_environments(UNUSED_RETENTION).await,
        Ok(0)
    );
    // The fetch renews the entry.
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
fn invalid_store_url_is_refused_with_hint() {
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

fn bucket(endpoint: &str) -> Artifacts {
    let retry = object_store::RetryConfig {
        max_retries: 0,
        ..Default::default()
    };
    let store = object_store::aws::AmazonS3Builder::new()
        .with_bucket_name("b")
        .with_region("r")
        .with_access_key_id("account")
        .with_secret_access_key("secret")
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_retry(retry)
        .with_http_connector(s3_client::S3Connector::new(None, endpoint))
        .build();
    Artifacts::new(
        Arc::new(store.unwrap()),
        Path::default(),
        "s3://b".to_owned(),
    )
}

/// Responds to each request with a status.
async fn service(status: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let answer =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 4\r\n\r\nwhy?");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    endpoint
}

#[tokio::test]
async fn unavailable_service_is_a_shortage() {
    let unreachable = "http://127.0.0.1:1".to_owned();
    for (endpoint, kind) in [
        (unreachable, Kind::Unavailable),
        (service("503 Slow Down").await, Kind::Unavailable),
        (service("429 Too Many").await, Kind::Unavailable),
        (service("403 Forbidden").await, Kind::Infrastructure),
        (service("400 Bad Request").await, Kind::Infrastructure),
    ] {
        let error = bucket(&endpoint).put(b"abc".to_vec()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{endpoint}: {error:?}");
        assert!(error.hint.unwrap().contains("AWS_"));
    }
}

#[test]
fn full_disk_is_found_in_causes() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let generic = object_store::Error::Generic {
        store: "LocalFileSystem",
        source: Box::new(full),
    };
    let wrapped = std::io::Error::other(generic);
    assert_eq!(outage::find_shortage(&wrapped), Some(Shortage::Disk));
    let other = std::io::Error::other("no permission");
    assert_eq!(outage::find_shortage(&other), None);
}

#[test]
fn invalid_digest_is_refused() {
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(Digest::parse(digest).is_some());
    for text in ["", "../../etc/passwd", &digest[1..], &digest.to_uppercase()] {
        assert_eq!(Digest::parse(text), None);
    }
}
