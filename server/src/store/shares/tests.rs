#![allow(clippy::unwrap_used)]
use super::super::NewGrading;
use super::*;

fn share(owner: &str, batch: &str, running: i64, turn: i64) -> Share {
    Share {
        kind: JobKind::Run,
        owner: owner.to_owned(),
        batch: batch.to_owned(),
        first: JobId::new(0),
        running,
        owner_running: running,
        turn,
    }
}

#[tokio::test]
async fn turn_of_finished_evaluation_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let grading = NewGrading {
        request: "{}".to_owned(),
        owner: "eval".to_owned(),
        batch: "b".to_owned(),
        idempotency_key: "k".to_owned(),
    };
    store.add_grading(&grading).await.unwrap();
    let batches = async || {
        let query = sqlx::query("SELECT batch FROM shares");
        store.list_texts("list the turns", query).await.unwrap()
    };
    assert!(store.claim_next("w").await.unwrap().is_some());
    assert_eq!(batches().await, ["b"]);
    store.delete_gradings("b").await.unwrap();
    assert!(batches().await.is_empty());
}

#[test]
fn owners_take_turns_and_then_their_batches() {
    let chosen = |waiting: &[Share]| next(waiting).map(|s| (s.owner.clone(), s.batch.clone()));
    let of = |owner: &str, batch: &str| Some((owner.to_owned(), batch.to_owned()));
    assert_eq!(chosen(&[]), None);
    // The owner with fewer running jobs goes first, regardless of turns.
    let waiting = [share("a", "", 2, 1), share("b", "", 1, 9)];
    assert_eq!(chosen(&waiting), of("b", ""));
    // Two batches do not increase an owner's share.
    let mut waiting = [
        share("a", "x", 1, 1),
        share("a", "y", 0, 2),
        share("b", "", 0, 3),
    ];
    waiting[1].owner_running = 1;
    assert_eq!(chosen(&waiting), of("b", ""));
    assert_eq!(chosen(&waiting[..2]), of("a", "y"));
    // If both have as many running jobs, the least recently served goes first.
    let waiting = [
        share("a", "x", 0, 1),
        share("a", "y", 0, 5),
        share("b", "", 0, 3),
    ];
    assert_eq!(chosen(&waiting), of("b", ""));
}
