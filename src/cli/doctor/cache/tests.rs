#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::super::finding::FindingStatus;
use super::*;
use testwright_sandboxes::local::disk_bytes;

#[test]
fn hard_links_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    let before = disk_bytes(folder.path());
    std::fs::write(inner.join("one"), vec![1; 1 << 20]).unwrap();
    let one = disk_bytes(folder.path());
    assert!(one >= before + (1 << 20), "{before} {one}");
    std::fs::hard_link(inner.join("one"), folder.path().join("two")).unwrap();
    assert_eq!(disk_bytes(folder.path()), one);
}

#[test]
fn cache_contents_show_folders_and_total() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(contents(&folders(folder.path())), None);
    for (name, bytes) in [("runs", 1 << 20), ("local", 3 << 20)] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("file"), vec![1; bytes]).unwrap();
    }
    let text = contents(&folders(folder.path())).unwrap().text;
    let (local, runs) = (text.find("local 3"), text.find("runs 1"));
    assert!(
        local.is_some() && local < runs && text.starts_with('4'),
        "{text}"
    );
}

#[test]
fn environments_show_size_and_limit() {
    let most = Size::new(50 << 30);
    assert_eq!(check_cache_size(&BTreeMap::new(), most), None);
    let local = ("local".to_owned(), 12 << 30);
    let mut sizes = BTreeMap::from([local]);
    let finding = check_cache_size(&sizes, most).unwrap();
    let expected = Finding::ok(
        "disk",
        "environments",
        "kept 12 GiB of at most 50 GiB for local",
    );
    assert_eq!(finding, expected);
    sizes.insert("docker".to_owned(), 51 << 30);
    let finding = check_cache_size(&sizes, most).unwrap();
    assert_eq!(finding.state, FindingStatus::Note);
    assert!(
        finding
            .text
            .starts_with("kept 51 GiB of at most 50 GiB for docker, 12")
    );
}

#[test]
fn missing_folder_reports_nearest_parent() {
    let folder = tempfile::tempdir().unwrap();
    let finding = check_free_space("cache", &folder.path().join("not/yet"));
    assert!(
        finding.text.contains("not/yet") && finding.text.ends_with(" free"),
        "{finding:?}"
    );
}
