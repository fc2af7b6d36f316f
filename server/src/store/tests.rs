#![allow(clippy::unwrap_used)]
use super::*;

#[tokio::test]
async fn database_is_in_folder_of_any_name() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("50%25 of C#?");
    std::fs::create_dir(&folder).unwrap();
    let store = Store::open(&Store::url_in(&folder)).await.unwrap();
    store.check_write().await.unwrap();
    assert!(folder.join("testwright.db").exists());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}
