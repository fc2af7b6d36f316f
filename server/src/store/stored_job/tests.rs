#![allow(clippy::unwrap_used)]
use std::cell::Cell;

use super::super::NewMatrix;
use super::*;

/// Stores matrices and returns their ids, newest first.
async fn add_matrices(store: &Store, count: u32) -> Vec<JobId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let matrix = NewMatrix {
            request: "{}".to_owned(),
            repository: "r".to_owned(),
            owner: "o".to_owned(),
            idempotency_key: None,
        };
        ids.push(store.add_matrix(&matrix).await.unwrap().0.id);
    }
    // Ids of the same millisecond have no order.
    ids.sort();
    ids.reverse();
    ids
}

#[tokio::test]
async fn list_joins_all_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let ids = add_matrices(&store, 2 * MAX_ROWS).await;
    for limit in [1, MAX_ROWS, MAX_ROWS + 1, 2 * MAX_ROWS, 500] {
        let filter = JobFilter {
            limit,
            ..JobFilter::default()
        };
        let listed = store.matrices(&filter, |matrix| matrix.id).await.unwrap();
        let count = ids.len().min(limit as usize);
        assert_eq!(listed, ids[..count], "{limit}");
    }
}

#[tokio::test]
async fn jobs_are_converted_before_next_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let ids = add_matrices(&store, 2 * MAX_ROWS).await;
    // The oldest matrix cannot be read.
    let update = sqlx::query("UPDATE matrices SET status = 'unknown' WHERE id = $1");
    let oldest = ids.last().unwrap().as_str();
    store.execute("update", update.bind(oldest)).await.unwrap();
    let filter = JobFilter {
        limit: 500,
        ..JobFilter::default()
    };
    let converted = Cell::new(0);
    let count = |_| converted.set(converted.get() + 1);
    assert!(store.matrices(&filter, count).await.is_err());
    assert_eq!(converted.get(), MAX_ROWS);
}
