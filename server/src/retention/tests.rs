#![allow(clippy::unwrap_used)]
use testwright_sandboxes::environment::SharedEnvironments;

use super::*;
use crate::store::{NewComparison, RequestedComparison};

#[tokio::test]
async fn folder_of_waiting_comparison_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let [waiting, unknown] = [JobId::new(0), JobId::new(1)];
    let requested = RequestedComparison {
        comparison: NewComparison {
            id: &waiting,
            owner: "o",
            name: "n",
            plan: "{}",
            max_dollars: None,
        },
        request: "{}",
        idempotency_key: None,
        traceparent: None,
    };
    store.add_comparison(&requested).await.unwrap();
    let runs = folder.path().join("runs");
    let [waiting, unknown] = [waiting, unknown].map(|id| {
        let of_attempt = runs.join(format!("{id}.1"));
        std::fs::create_dir_all(&of_attempt).unwrap();
        let old = SystemTime::now() - 2 * UNKNOWN_FOLDER_RETENTION;
        let opened = std::fs::File::open(&of_attempt).unwrap();
        opened.set_modified(old).unwrap();
        of_attempt
    });
    let retention = Retention {
        store,
        telemetry: Telemetry::start().unwrap(),
        runs,
        cache: folder.path().join("cache"),
        policy: RetentionPolicy::default(),
    };
    retention.remove_folders().await.unwrap();
    assert!(waiting.exists() && !unknown.exists());
}

#[tokio::test]
async fn oldest_artifacts_are_removed_first() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::in_folder(&folder.path().join("store")).unwrap();
    let archive = folder.path().join("archive");
    std::fs::write(&archive, "an archive").unwrap();
    SharedEnvironments::publish(&artifacts, "env-1", "{}", &archive)
        .await
        .unwrap();
    let files = |ended_at| JobFiles {
        of: JobId::new(0),
        ended_at,
        bytes: 1,
    };
    let bytes =
        |oldest: Vec<Removable>| -> Vec<u64> { oldest.iter().map(Removable::bytes).collect() };
    let shared = artifacts.environments().await.unwrap();
    let (before, after) = (files(0), files(now() + DAY));
    let sorted = sort_by_age(vec![before.clone(), after], shared);
    assert_eq!(bytes(sorted), [1, 10, 1]);
    // More of the unlisted files may be older than the environment.
    let shared = artifacts.environments().await.unwrap();
    let sorted = sort_by_age(vec![before; MAX_OLDEST as usize], shared);
    assert!(bytes(sorted).iter().all(|bytes| *bytes == 1));

    let shared = artifacts.environments().await.unwrap();
    artifacts.remove_environment(&shared[0]).await.unwrap();
    assert!(artifacts.environments().await.unwrap().is_empty());
}
