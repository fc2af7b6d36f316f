#![allow(clippy::unwrap_used)]
use super::*;

#[tokio::test]
async fn task_of_removed_run_is_due() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let task = NewGitHubTask {
        id: "answer d-1".to_owned(),
        kind: GitHubTaskKind::Answer,
        repository: "o/n".to_owned(),
        issue: 7,
        details: "{}".to_owned(),
    };
    let tasks = [task];
    let added = store.add_github_delivery("d-1", "digest", &tasks);
    assert!(added.await.unwrap());
    let removed_run = JobId::new(0);
    let linked = store.link_github_run("answer d-1", &removed_run);
    linked.await.unwrap();
    let claimed = store.claim_github_task(GitHubTaskKind::Answer, "w");
    assert_eq!(claimed.await.unwrap().unwrap().id.as_str(), "answer d-1");
}
