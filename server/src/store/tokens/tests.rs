#![allow(clippy::unwrap_used)]
use super::*;

#[tokio::test]
async fn token_is_valid_without_writes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
    let secret = store.add_token("a", "a", &[Scope::Read], None);
    let secret = secret.await.unwrap();
    let trigger =
        "CREATE TRIGGER no_room BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'full'); END";
    store
        .execute("add a trigger", sqlx::query(trigger))
        .await
        .unwrap();
    let token = store.token(&secret).await.unwrap().unwrap();
    assert_eq!((token.name.as_str(), token.last_used_at), ("a", None));
}
