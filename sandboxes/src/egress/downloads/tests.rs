#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn oldest_is_evicted_and_pages_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let downloads = Downloads::open(folder.path(), 3 * 4096).unwrap();
    let page = Page::new(Some("x".to_owned()), true, Files::new(), b"{\n}".to_vec());
    downloads.store_page("p", &page).unwrap();
    let again = downloads.page("p").unwrap();
    assert_eq!(
        (again.body, again.head.etag.as_deref()),
        (page.body, Some("x"))
    );
    for (name, age) in [("old", 50), ("new", 5)] {
        let file = fs::File::create(folder.path().join("downloads/files").join(name)).unwrap();
        file.set_len(5000).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }
    downloads.evict().unwrap();
    assert_eq!(names(folder.path(), "files"), ["new"]);
    assert_eq!(downloads.bytes(), 3 * 4096);
    let mode = fs::metadata(folder.path().join("downloads"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

fn names(cache: &Path, folder: &str) -> Vec<String> {
    let folder = fs::read_dir(cache.join("downloads").join(folder)).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn limit_holds_at_all_times() {
    let folder = tempfile::tempdir().unwrap();
    let downloads = Downloads::open(folder.path(), 100 << 10).unwrap();
    for n in 0..20 {
        let aside = downloads.temporary_file().unwrap();
        aside.as_file().set_len(30 << 10).unwrap();
        let target = downloads.file("x", &n.to_string());
        downloads.store(aside, &target).unwrap();
        assert!(target.exists());
        assert!(names(folder.path(), "files").len() <= 3);
    }
    // A file above the limit stays until the next one is stored or the build ends.
    let aside = downloads.temporary_file().unwrap();
    aside.as_file().set_len(300 << 10).unwrap();
    let target = downloads.file("x", "large");
    downloads.store(aside, &target).unwrap();
    assert_eq!(names(folder.path(), "files").len(), 1);
    assert!(target.exists());
    downloads.evict().unwrap();
    assert_eq!(downloads.bytes(), 0);
}

#[test]
fn orphaned_temporary_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let downloads = Downloads::open(folder.path(), 1 << 20).unwrap();
    let own = downloads.temporary_file().unwrap();
    let orphan = fs::File::create(folder.path().join("downloads/aside/left")).unwrap();
    for file in [own.as_file(), &orphan] {
        file.set_modified(SystemTime::now() - 2 * ORPHAN_AGE)
            .unwrap();
    }
    drop(orphan);
    downloads.evict().unwrap();
    let own = own.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(names(folder.path(), "aside"), [own]);
}

#[test]
fn page_of_earlier_version_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let downloads = Downloads::open(folder.path(), 1 << 20).unwrap();
    let page = Page::new(Some("x".to_owned()), true, Files::new(), b"{}".to_vec());
    downloads.store_page("p", &page).unwrap();
    let path = folder.path().join("downloads/pages/p");
    let now = fs::read_to_string(&path).unwrap();
    let version = format!("\"version\":{VERSION},");
    for then in ["", "\"version\":1,"] {
        let then = now.replacen(&version, then, 1);
        assert_ne!(then, now);
        fs::write(&path, then).unwrap();
        assert!(downloads.page("p").is_none());
    }
    fs::write(&path, now).unwrap();
    assert!(downloads.page("p").is_some());
}
