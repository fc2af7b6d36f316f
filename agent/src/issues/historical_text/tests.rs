#![allow(clippy::unwrap_used)]
use super::*;

#[tokio::test]
async fn folder_has_markdown_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("1.md", "# It fails\n\nFor negative numbers.\n");
    write(
        "2.json",
        r#"{"title": "It hangs ", "body": "a\r\nb", "created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-02T00:00:00Z"}"#,
    );
    write(
        "3.json",
        r#"{"title": "Late", "body": null, "created_at": "2024-06-01T00:00:00Z"}"#,
    );
    write("4.json", r#"{"title": "A change", "pull_request": {}}"#);
    write("5.json", "[]");
    let source = IssueSource::Folder(folder.path().to_owned());
    let fixed: Timestamp = "2024-03-01T00:00:00Z".parse().unwrap();
    let read = async |number| source.read(number, fixed).await.unwrap();
    let first = read(1).await.unwrap();
    assert_eq!(
        (first.title.as_str(), first.origin.as_str()),
        ("It fails", "1.md")
    );
    assert_eq!(first.body.trim(), "For negative numbers.");
    let second = read(2).await.unwrap();
    assert_eq!(
        (second.title.as_str(), second.body.as_str()),
        ("It hangs", "a\nb")
    );
    assert_eq!(second.later_edits, "none");
    assert_eq!(read(3).await.unwrap_err(), "it was filed after the fix");
    assert_eq!(
        read(4).await.unwrap_err(),
        "it is a pull request, not an issue"
    );
    assert!(
        read(5)
            .await
            .unwrap_err()
            .starts_with("5.json is not an issue")
    );
    assert_eq!(read(6).await.unwrap_err(), "the folder has no file for it");
}
