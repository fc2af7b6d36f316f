#![allow(clippy::unwrap_used)]
use super::super::NewGrading;
use super::*;

#[tokio::test]
async fn gradings_of_cancelled_comparison_are_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let id = JobId::new(0);
    let comparison = NewComparison {
        id: &id,
        owner: "o",
        name: "n",
        plan: "{}",
        max_dollars: None,
    };
    store.put_comparison(&comparison).await.unwrap();
    let grading = NewGrading {
        request: "{}".to_owned(),
        owner: "o".to_owned(),
        batch: id.to_string(),
        idempotency_key: "k".to_owned(),
    };
    let status = async || store.gradings(id.as_str()).await.unwrap()[0].status;
    store.cancel_comparison(&id).await.unwrap();
    store.add_grading(&grading).await.unwrap();
    assert!(store.cancel_late_jobs(&id).await.unwrap());
    assert_eq!(status().await, JobStatus::Cancelled);

    store.put_comparison(&comparison).await.unwrap();
    assert!(!store.cancel_late_jobs(&id).await.unwrap());
}
