//! Claiming of runs: owners take turns, no run is claimed twice, and orphaned runs are claimed again.

use std::collections::BTreeSet;

use testwright_server::store::{
    AttemptResults, JobId, JobKind, JobStatus, NewRun, Store, StoredEvent,
};

use super::{ServerProcess, databases, issue, stored_run};
use crate::support::program::{TestDir, example};

async fn add(store: &Store, owner: &str, batch: &str) -> JobId {
    let new = NewRun {
        request: "{}".to_owned(),
        title: String::new(),
        repository: "https://example.org/o/n".to_owned(),
        approach: "a".to_owned(),
        model: "m".to_owned(),
        idempotency_key: None,
        owner: owner.to_owned(),
        batch: batch.to_owned(),
        traceparent: None,
    };
    // Ids sort by millisecond, so each needs its own.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    store.add_run(&new).await.unwrap().0.id
}

async fn store(place: &TestDir, database: &databases::Database) -> Store {
    let embedded = Store::url_in(&place.path("."));
    let url = database.url.as_deref().unwrap_or(&embedded);
    Store::open(url).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_take_turns() {
    for database in databases::all() {
        let place = TestDir::new();
        let store = store(&place, &database).await;
        let mut names = Vec::new();
        for n in 0..4 {
            names.push((add(&store, "many", "x").await, format!("many/x{n}")));
        }
        names.push((add(&store, "many", "y").await, "many/y".to_owned()));
        names.push((add(&store, "few", "").await, "few".to_owned()));
        let mut order = Vec::new();
        // One worker finishes each run before it claims the next.
        for _ in 0..6 {
            let taken = store.claim_next("w").await.unwrap().unwrap();
            let name = names.iter().find(|(id, _)| *id == taken.id).unwrap();
            order.push(name.1.as_str());
            let ended = store.end_attempt(&taken, JobStatus::Nothing, AttemptResults::default());
            assert_eq!(ended.await.unwrap(), Some(JobStatus::Nothing));
        }
        assert_eq!(order[..3], ["many/x0", "few", "many/y"]);
        assert_eq!(order[3..], ["many/x1", "many/x2", "many/x3"]);
        assert_eq!(store.claim_next("w").await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_claimed_once_unless_orphaned() {
    for database in databases::all() {
        let place = TestDir::new();
        let store = store(&place, &database).await;
        for _ in 0..12 {
            add(&store, "a", "").await;
        }
        let taking = (0..16).map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.claim_next(&format!("w{n}")).await.unwrap() })
        });
        let taken = futures::future::join_all(taking.collect::<Vec<_>>()).await;
        let taken: Vec<_> = taken.into_iter().filter_map(Result::unwrap).collect();
        let distinct: BTreeSet<&str> = taken.iter().map(|t| t.id.as_str()).collect();
        // The other four workers find no run.
        assert_eq!((taken.len(), distinct.len()), (12, 12));

        let run = add(&store, "a", "").await;
        add(&store, "a", "").await;
        let first = store.claim_next("w").await.unwrap().unwrap();
        assert!(store.return_orphan(&first).await.unwrap());
        assert!(!store.is_wanted(&first).await.unwrap());
        let second = store.claim_next("v").await.unwrap().unwrap();
        assert!(!store.return_orphan(&first).await.unwrap());
        assert_eq!((&first.id, &second.id), (&run, &run));
        assert_eq!((first.number, second.number), (1, 2));
        // The first worker may no longer write.
        let event = |number| StoredEvent {
            number,
            line: "{}".to_owned(),
        };
        let added = store.add_event(&run, first.number, event(1));
        assert!(added.await.is_err());
        let ends = AttemptResults {
            last_event: Some(event(1)),
            ..AttemptResults::default()
        };
        let ended = store.end_attempt(&first, JobStatus::Nothing, ends).await;
        assert_eq!(ended.unwrap(), None);
        assert_eq!(store.events(&run, 0, 9).await.unwrap(), []);
        let added = store.add_event(&run, second.number, event(1));
        assert!(added.await.is_ok());
        // A cancelled orphaned run has ended.
        assert!(store.cancel(JobKind::Run, &run).await.unwrap());
        assert!(store.return_orphan(&second).await.unwrap());
        let third = store.claim_next("w").await.unwrap().unwrap();
        assert_ne!(third.id, run);
        let ended = store.run(&run).await.unwrap().unwrap();
        assert_eq!(ended.status, JobStatus::Cancelled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_of_unknown_process_is_reclaimed() {
    for database in databases::all() {
        let place = TestDir::new();
        let embedded = Store::url_in(&place.path("data"));
        std::fs::create_dir(place.path("data")).unwrap();
        let store = Store::open(database.url.as_deref().unwrap_or(&embedded))
            .await
            .unwrap();
        let new = NewRun {
            request: issue().to_string(),
            repository: example("slugs"),
            ..stored_run("a", "")
        };
        // One run is stored by another process; the other is claimed by a process that is gone.
        let (waits, _) = store.add_run(&new).await.unwrap();
        let (lost, _) = store.add_run(&new).await.unwrap();
        let taken = store.claim_next("gone").await.unwrap().unwrap();
        let daemon = ServerProcess::start(&place, &database, None);
        for run in [&waits.id, &lost.id] {
            daemon.wait_for(run.as_str(), "accepted");
        }
        let run = store.run(&taken.id).await.unwrap().unwrap();
        assert_eq!(run.attempt, 2);
    }
}
