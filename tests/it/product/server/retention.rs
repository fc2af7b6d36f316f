//! Removal of old runs, and of files that exceed the size limit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use testwright_server::store::{
    Attempt, AttemptResults, ComparisonReport, JobId, JobStatus, NewComparison, NewGrading,
    NewMatrix, RemovalCounts, RequestedComparison, Store, StoredArtifact, now,
};

use super::artifacts::files;
use super::databases::{self, Database};
use super::{ServerProcess, issue, stored_run};
use crate::support::program::TestDir;

const DAY: i64 = 24 * 3_600_000;

struct Stored {
    store: Store,
    place: TestDir,
    database: Database,
}

impl Stored {
    async fn on(database: Database) -> Self {
        let place = TestDir::new();
        let url = database.url_in(&place.path("."));
        Stored {
            store: Store::open(&url).await.unwrap(),
            place,
            database,
        }
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let counted = self.database.execute(&self.place.path("."), &sql);
        counted.parse().unwrap()
    }

    fn ended_before(&self, table: &str, id: &str, days: i64) {
        self.was_before(table, "ended_at", id, days);
    }

    fn was_before(&self, table: &str, column: &str, id: &str, days: i64) {
        let ago = days * DAY;
        let sql = format!("UPDATE {table} SET {column} = {column} - {ago} WHERE id = '{id}'");
        self.database.execute(&self.place.path("."), &sql);
    }

    async fn add_run(&self, batch: &str) -> JobId {
        let run = stored_run("a", batch);
        self.store.add_run(&run).await.unwrap().0.id
    }

    async fn take(&self) -> Attempt {
        let taken = self.store.claim_next("w").await.unwrap();
        taken.unwrap()
    }

    /// Stores a finished run with files of these contents.
    async fn ended_run(&self, batch: &str, contents: &[&str]) -> JobId {
        let id = self.add_run(batch).await;
        let taken = self.take().await;
        assert_eq!(taken.id, id);
        for (n, content) in contents.iter().enumerate() {
            let artifact = StoredArtifact {
                name: format!("{n}.txt"),
                digest: (*content).to_owned(),
                bytes: content.len() as i64,
            };
            self.store.put_artifact(&taken, &artifact).await.unwrap();
        }
        let ended = self
            .store
            .end_attempt(&taken, JobStatus::Accepted, AttemptResults::default());
        ended.await.unwrap();
        id
    }

    async fn put_comparison(&self, id: &JobId) {
        let compared = NewComparison {
            id,
            owner: "a",
            name: "n",
            plan: "{}",
            max_dollars: None,
        };
        self.store.put_comparison(&compared).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_items_are_removed_with_files() {
    for database in databases::all() {
        let stored = Stored::on(database).await;
        let store = &stored.store;
        let month = || store.remove_ended_before(now() - 30 * DAY);

        let matrix = NewMatrix {
            request: "{}".to_owned(),
            repository: "r".to_owned(),
            owner: "a".to_owned(),
            idempotency_key: None,
        };
        let grading = NewGrading {
            request: "{}".to_owned(),
            owner: "a".to_owned(),
            batch: "b".to_owned(),
            idempotency_key: "b/1".to_owned(),
        };
        for _ in 0..2 {
            store.add_matrix(&matrix).await.unwrap();
            let taken = stored.take().await;
            store.add_cell(&taken, ["t", "p"], "{}").await.unwrap();
            store
                .end_attempt(&taken, JobStatus::Done, AttemptResults::default())
                .await
                .unwrap();
            stored.ended_before("matrices", taken.id.as_str(), 31);
        }
        // This matrix is still running.
        store.add_matrix(&matrix).await.unwrap();
        let open = stored.take().await;
        store.add_cell(&open, ["t", "p"], "{}").await.unwrap();
        store.add_grading(&grading).await.unwrap();
        let taken = stored.take().await;
        store.add_graded(&taken, "p", "{}").await.unwrap();
        store
            .end_attempt(&taken, JobStatus::Done, AttemptResults::default())
            .await
            .unwrap();
        stored.ended_before("gradings", taken.id.as_str(), 31);
        let removed = month().await.unwrap();
        let wanted = RemovalCounts {
            matrices: 2,
            gradings: 1,
            ..RemovalCounts::default()
        };
        assert_eq!(removed, wanted);
        assert_eq!(stored.count("matrices"), 1);
        assert_eq!(stored.count("matrix_cells"), 1);
        assert_eq!(stored.count("graded_predictions"), 0);
        assert_eq!(month().await.unwrap(), RemovalCounts::default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn comparison_runs_outlive_running_comparison() {
    for database in databases::all() {
        let stored = Stored::on(database).await;
        let store = &stored.store;
        let month = || store.remove_ended_before(now() - 30 * DAY);

        // Comparisons of commands: graded, cancelled, resumed.
        let [graded, cancelled, again] = [1, 2, 3].map(JobId::new);
        let report = ComparisonReport {
            report: "{}".to_owned(),
            page: String::new(),
        };
        for id in [&graded, &cancelled, &again] {
            stored.put_comparison(id).await;
        }
        assert_eq!(month().await.unwrap(), RemovalCounts::default());
        for id in [&graded, &cancelled, &again] {
            match id == &cancelled {
                true => drop(store.cancel_comparison(id).await.unwrap()),
                false => store.put_comparison_report(id, &report).await.unwrap(),
            }
            stored.ended_before("comparisons", id.as_str(), 31);
        }
        stored.put_comparison(&again).await;
        // A comparison that a server is still running, with a run that ended long ago.
        let asked = JobId::new(4);
        let new = RequestedComparison {
            comparison: NewComparison {
                id: &asked,
                owner: "a",
                name: "n",
                plan: "{}",
                max_dollars: None,
            },
            request: "{}",
            idempotency_key: None,
            traceparent: None,
        };
        store.add_comparison(&new).await.unwrap();
        let run = stored.ended_run(asked.as_str(), &["a"]).await;
        stored.ended_before("runs", run.as_str(), 31);
        let removed = month().await.unwrap();
        let comparisons = |comparisons| RemovalCounts {
            comparisons,
            ..RemovalCounts::default()
        };
        assert_eq!(removed, comparisons(2));
        assert!(store.comparison(&again).await.unwrap().is_some());

        let claim = store.claim_comparison("w").await.unwrap().unwrap();
        let file = StoredArtifact {
            name: "report.csv".to_owned(),
            digest: "b".to_owned(),
            bytes: 1,
        };
        store.put_artifact(&claim, &file).await.unwrap();
        let ended = store.end_attempt(&claim, JobStatus::Done, AttemptResults::default());
        ended.await.unwrap();
        stored.ended_before("comparisons", asked.as_str(), 31);
        let wanted = RemovalCounts {
            runs: 1,
            ..comparisons(1)
        };
        assert_eq!(month().await.unwrap(), wanted);
        assert_eq!(stored.count("artifacts"), 0);
        assert_eq!(stored.count("shares WHERE batch <> ''"), 0);
        let gone = store.removed_artifacts(9).await.unwrap();
        assert_eq!(gone, ["a", "b"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_files_are_listed_first() {
    for database in databases::all() {
        let stored = Stored::on(database).await;
        let store = &stored.store;
        assert_eq!(store.artifact_bytes().await, Ok(0));
        let new = stored.ended_run("", &["same", "new"]).await;
        let old = stored.ended_run("", &["same", "older"]).await;
        stored.ended_before("runs", old.as_str(), 1);
        stored.ended_run("", &[]).await;
        // A running run is never removed.
        stored.add_run("").await;
        let taken = stored.take().await;
        let artifact = StoredArtifact {
            name: "a".to_owned(),
            digest: "of the open one".to_owned(),
            bytes: 100,
        };
        store.put_artifact(&taken, &artifact).await.unwrap();
        assert_eq!(store.artifact_bytes().await, Ok(4 + 3 + 5 + 100));
        let oldest = || async {
            let found = store.oldest_files(9).await.unwrap();
            let found = found.into_iter().map(|files| (files.of, files.bytes));
            found.collect::<Vec<_>>()
        };
        assert_eq!(oldest().await, [(old.clone(), 9), (new.clone(), 7)]);
        store.remove_files(&old).await.unwrap();
        assert_eq!(oldest().await, [(new, 7)]);
        assert_eq!(store.artifact_bytes().await, Ok(4 + 3 + 100));
        assert_eq!(store.artifacts(&old).await, Ok(Vec::new()));
    }
}

#[test]
fn full_artifact_store_evicts_oldest_run() {
    let (place, database) = (TestDir::new(), databases::embedded());
    let first = ServerProcess::start(&place, &database, None);
    let runs = [(); 2].map(|()| {
        let run = first.run(&issue());
        first.wait_for(&run, "accepted");
        run
    });
    let [of_old, of_new] = [0, 1].map(|n| files(&first.client, &runs[n]));
    assert_eq!(first.terminate(), Some(0));
    let contents = |files: &BTreeMap<String, String>| -> BTreeSet<String> {
        files.values().cloned().collect()
    };
    let both = &contents(&of_old) | &contents(&of_new);
    let bytes: usize = both.iter().map(String::len).sum();

    let most = (bytes - 1).to_string();
    let words = ["--workers", "0", "--artifacts-size", &most];
    let second = ServerProcess::start_with(&place, &database, None, "data", &words);
    let listed = format!("/v1/runs/{}/artifacts", runs[0]);
    super::wait_until("the oldest files are gone", || {
        second.client.get(&listed).json() == json!({"artifacts": []})
    });
    assert_eq!(files(&second.client, &runs[1]), of_new);
    let patch = second.client.get(&format!("/v1/runs/{}/patch", runs[0]));
    assert_eq!(patch.body, of_old["test.patch"]);
    assert_eq!(second.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_comparison_is_removed() {
    for database in databases::all() {
        let stored = Stored::on(database).await;
        let store = &stored.store;
        let month = || store.remove_ended_before(now() - 30 * DAY);

        let [left, without_runs, new, goes_on] = [1, 2, 3, 4].map(JobId::new);
        for id in [&left, &without_runs, &new, &goes_on] {
            stored.put_comparison(id).await;
            stored.was_before("comparisons", "created_at", id.as_str(), 32);
        }
        for _ in 0..2 {
            let run = stored.ended_run(left.as_str(), &[]).await;
            stored.ended_before("runs", run.as_str(), 31);
        }
        let run = stored.ended_run(new.as_str(), &[]).await;
        stored.ended_before("runs", run.as_str(), 29);
        let run = stored.ended_run(goes_on.as_str(), &[]).await;
        stored.ended_before("runs", run.as_str(), 31);
        stored.add_run(goes_on.as_str()).await;

        let wanted = RemovalCounts {
            runs: 3,
            comparisons: 2,
            ..RemovalCounts::default()
        };
        assert_eq!(month().await.unwrap(), wanted);
        for id in [&left, &without_runs] {
            assert!(store.comparison(id).await.unwrap().is_none(), "{id}");
        }
        for id in [&new, &goes_on] {
            assert!(store.comparison(id).await.unwrap().is_some(), "{id}");
        }
    }
}
