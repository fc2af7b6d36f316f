#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::local::size::own_bytes;

fn put(folder: &Path, path: &str, content: &str, mode: u32, seconds: u64) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(seconds, 5);
    File::open(&path).unwrap().set_modified(time).unwrap();
}

/// Returns a text longer than one comparison block, so that a difference at its end is in the second block.
fn long(end: &str) -> String {
    "x".repeat(100_000) + end
}

#[test]
fn only_equal_files_are_linked() {
    let place = tempfile::tempdir().unwrap();
    let [model, from, to] = ["model", "from", "to"].map(|name| place.path().join(name));
    for folder in [&model, &from] {
        put(folder, "sub/same", &long("a"), 0o644, 1000);
        put(folder, "same", "", 0o755, 1000);
    }
    let pairs = [
        (
            "bytes",
            [(long("a"), 0o644, 1000), (long("b"), 0o644, 1000)],
        ),
        (
            "size",
            [
                ("a".to_owned(), 0o644, 1000),
                ("ab".to_owned(), 0o644, 1000),
            ],
        ),
        (
            "mode",
            [("a".to_owned(), 0o644, 1000), ("a".to_owned(), 0o755, 1000)],
        ),
        (
            "time",
            [("a".to_owned(), 0o644, 1000), ("a".to_owned(), 0o644, 1001)],
        ),
    ];
    for (name, [there, here]) in &pairs {
        for (folder, (content, mode, seconds)) in [(&model, there), (&from, here)] {
            put(folder, name, content, *mode, *seconds);
        }
    }
    put(&from, "sub/new", "a", 0o644, 1000);
    put(&from, "linked", "a", 0o644, 1000);
    put(&model, "other", "a", 0o644, 1000);
    std::os::unix::fs::symlink("other", model.join("linked")).unwrap();
    copy_tree(&from, &to, CopyMode::CopyOrLink(&model), None).unwrap();

    let file = |folder: &Path, path: &str| fs::symlink_metadata(folder.join(path)).unwrap();
    let mut paths = vec!["sub/new", "linked", "sub/same", "same"];
    paths.extend(pairs.iter().map(|(name, _)| *name));
    for path in paths {
        let (copy, original) = (file(&to, path), file(&from, path));
        assert_eq!(
            fs::read(to.join(path)).unwrap(),
            fs::read(from.join(path)).unwrap(),
            "{path}"
        );
        assert_eq!(
            (copy.mode(), copy.mtime()),
            (original.mode(), original.mtime()),
            "{path}"
        );
        let linked = path.ends_with("same");
        let there = fs::symlink_metadata(model.join(path));
        assert_eq!(
            there.is_ok_and(|there| there.ino() == copy.ino()),
            linked,
            "{path}"
        );
    }
    assert!(!to.join("other").exists());

    let (all, own) = (
        own_bytes(&to, None).unwrap(),
        own_bytes(&to, Some(&model)).unwrap(),
    );
    assert_eq!(all - own, file(&to, "sub/same").blocks() * 512);
}

/// If the owner differs, root's files are copied, not linked.
#[test]
fn other_owner_prevents_link() {
    let place = tempfile::tempdir().unwrap();
    let [model, from, to] = ["model", "from", "to"].map(|name| place.path().join(name));
    for folder in [&model, &from] {
        put(folder, "file", "a", 0o644, 1000);
    }
    if !geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    copy_tree(&from, &to, CopyMode::CopyOrLink(&model), Some(4711)).unwrap();
    let copy = fs::metadata(to.join("file")).unwrap();
    assert_eq!((copy.uid(), copy.nlink()), (4711, 1));
    assert_eq!(fs::metadata(model.join("file")).unwrap().uid(), 0);
}

/// A folder that is reached through a link is treated as missing.
#[test]
fn model_links_are_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let [model, from, to] = ["model", "from", "to"].map(|name| place.path().join(name));
    put(&from, "sub/file", "a", 0o644, 1000);
    put(place.path(), "elsewhere/file", "a", 0o644, 1000);
    fs::create_dir(&model).unwrap();
    std::os::unix::fs::symlink("../elsewhere", model.join("sub")).unwrap();
    copy_tree(&from, &to, CopyMode::CopyOrLink(&model), None).unwrap();
    assert_eq!(fs::metadata(to.join("sub/file")).unwrap().nlink(), 1);
}

/// A copy takes no more room than its original, however many names a file has.
#[test]
fn hard_links_are_copied_once() {
    let place = tempfile::tempdir().unwrap();
    let [model, from, to] = ["model", "from", "to"].map(|name| place.path().join(name));
    put(&from, "file", &long("a"), 0o640, 1000);
    put(&from, "in-model", &long("b"), 0o644, 1000);
    put(&model, "in-model", &long("b"), 0o644, 1000);
    for number in 0..40 {
        let folder = from.join(format!("sub{number}"));
        fs::create_dir(&folder).unwrap();
        for name in ["file", "in-model"] {
            fs::hard_link(from.join(name), folder.join(name)).unwrap();
        }
    }
    copy_tree(&from, &to, CopyMode::CopyOrLink(&model), None).unwrap();
    let file = |path: &str| fs::symlink_metadata(to.join(path)).unwrap();
    for number in 0..40 {
        let copy = file(&format!("sub{number}/file"));
        assert_eq!(copy.ino(), file("file").ino());
        assert_eq!((copy.mode() & 0o777, copy.mtime()), (0o640, 1000));
        assert_eq!(
            file(&format!("sub{number}/in-model")).ino(),
            file("in-model").ino()
        );
    }
    assert_eq!(
        fs::read(to.join("sub7/file")).unwrap(),
        long("a").as_bytes()
    );
    assert_eq!(
        own_bytes(&to, None).unwrap(),
        own_bytes(&from, None).unwrap()
    );
}

/// A file can have 65,000 names on ext4. A further name starts a second copy, not one copy per name.
#[test]
fn full_link_count_starts_second_copy() {
    let place = tempfile::tempdir().unwrap();
    let [model, from, to] = ["model", "from", "to"].map(|name| place.path().join(name));
    for folder in [&model, &from] {
        put(folder, "file", "a", 0o644, 1000);
        fs::create_dir(folder.join("sub")).unwrap();
    }
    let other = |folder: &Path, number: u32| folder.join(format!("sub/{number}"));
    // Remove two names, so that the model's file can take two more.
    let link_count = (0..70_000)
        .take_while(|number| fs::hard_link(model.join("file"), other(&model, *number)).is_ok())
        .count() as u32;
    for number in link_count.saturating_sub(2)..link_count {
        fs::remove_file(other(&model, number)).unwrap();
    }
    for number in 0..10 {
        fs::hard_link(from.join("file"), other(&from, number)).unwrap();
    }
    copy_tree(&from, &to, CopyMode::CopyOrLink(&model), None).unwrap();
    let inodes: std::collections::BTreeSet<_> = (0..10)
        .map(|number| fs::metadata(other(&to, number)).unwrap().ino())
        .chain([fs::metadata(to.join("file")).unwrap().ino()])
        .collect();
    assert!(inodes.len() <= 2, "{} files", inodes.len());
}
