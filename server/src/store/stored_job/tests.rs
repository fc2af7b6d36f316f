#![allow(clippy::unwrap_used)]
use super::super::NewMatrix;
use super::*;

#[tokio::test]
async fn list_joins_all_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 * MAX_ROWS + 1 {
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
    for limit in [1, MAX_ROWS, MAX_ROWS + 1, 2 * MAX_ROWS + 1, 500] {
        let filter = JobFilter {
            limit,
            ..JobFilter::default()
        };
        let listed = store.matrices(&filter, |matrix| matrix.id).await.unwrap();
        let count = ids.len().min(limit as usize);
        assert_eq!(listed, ids[..count], "{limit}");
    }
}
