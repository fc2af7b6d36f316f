//! Tests of archives of commits: their content, digests and age.

use super::*;

#[test]
fn archive_contains_whole_commit() {
    let place = TestRepository::new();
    let work = place.repository();
    let source = place.source(&work, None);
    let out = place.path("out");
    let mut archive = tar::Archive::new(std::fs::File::open(&source.archive).unwrap());
    archive.set_preserve_permissions(true);
    archive.set_preserve_mtime(true);
    archive.unpack(&out).unwrap();

    assert_eq!(
        std::fs::read_to_string(out.join("pkg/version.txt")).unwrap(),
        "$Format:%H$\n"
    );
    assert!(
        out.join("tests/test_a.py").exists(),
        "export-ignore applied"
    );
    assert!(out.join(format!("{}/x.py", "deep".repeat(40))).exists());
    assert_eq!(
        std::fs::read_link(out.join("link")).unwrap(),
        Path::new("pkg/version.txt")
    );
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let run = std::fs::metadata(out.join("run.sh")).unwrap();
    assert_eq!(run.permissions().mode() & 0o777, 0o755);
    assert_eq!(run.mtime(), 1_580_702_706);
    assert_eq!(source.date.as_deref(), Some("2020-02-03T04:05:06Z"));
    assert_eq!(source.describe.as_deref(), Some("v1.2"));
    assert_eq!(
        source.commit.as_deref(),
        Some(git(&work, &["rev-parse", "HEAD"]).as_str())
    );
    assert_eq!(source.name, "project");
    assert!(source.notes.is_empty(), "{:?}", source.notes);

    // A later tag is used.
    git(&work, &["tag", "-a", "v1.3", "-m", "later"]);
    assert_eq!(place.source(&work, None).describe.as_deref(), Some("v1.3"));
}

#[test]
fn same_files_have_same_digest() {
    let place = TestRepository::new();
    let work = place.repository();
    let first = place.source(&work, None);
    write(&work, "pkg/b.py", "b = 1\n");
    commit(&work, "second");
    let second = place.source(&work, None);
    git(&work, &["rm", "-q", "pkg/b.py"]);
    commit(&work, "third");
    let third = place.source(&work, None);
    assert_ne!(first.digest, second.digest);
    assert_eq!(first.digest, third.digest);
    assert_ne!(first.commit, third.commit);
    // A plain folder with the same files is the same old code.
    std::fs::remove_dir_all(work.join(".git")).unwrap();
    let plain = place.source(&work, None);
    assert_eq!(plain.digest, first.digest);
    let note = "project is not a git repository; its files are used as they are";
    assert_eq!(plain.notes, [note]);
    assert_eq!((plain.commit, plain.date), (None, None));
}

#[test]
fn mirror_with_missing_content_is_read() {
    let place = TestRepository::new();
    let work = place.repository();
    let object = git(&work, &["rev-parse", "HEAD:run.sh"]);
    let object = work
        .join(".git/objects")
        .join(&object[..2])
        .join(&object[2..]);
    std::fs::rename(&object, place.path("away")).unwrap();
    let mut digests = Vec::new();
    for _ in 0..2 {
        let source = place.source(&work, None);
        assert_eq!(
            source.notes,
            ["files whose content the repository lacks were omitted: run.sh"]
        );
        assert!(!paths(&source).contains(&"run.sh".to_owned()));
        digests.push(source.digest);
    }
    // Once the object is back, the commit is complete again and differs from before.
    std::fs::rename(place.path("away"), &object).unwrap();
    let whole = place.source(&work, None);
    assert!(whole.notes.is_empty() && paths(&whole).contains(&"run.sh".to_owned()));
    assert!(digests[0] == digests[1] && digests[0] != whole.digest);
}

/// Sets the time of an archive's last use to `minutes` ago.
fn age(archive: &Path, minutes: u64) {
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(60 * minutes);
    std::fs::File::open(archive)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[test]
fn least_recently_used_archives_are_removed() {
    let place = TestRepository::new();
    let work = place.repository();
    let mut archives = Vec::new();
    for (name, minutes) in [("a", 90), ("b", 200), ("c", 80), ("d", 10)] {
        write(&work, "large.txt", &name.repeat(1 << 20));
        write(
            &work,
            "pointer",
            &format!("version https://git-lfs.github.com/spec/v1\n{name}\n"),
        );
        commit(&work, name);
        let source = place.open(&work, None).unwrap().source().unwrap();
        archives.push((source.archive.clone(), minutes));
    }
    let first = place.open(&work, Some("HEAD~3")).unwrap().source().unwrap();
    for (archive, minutes) in &archives {
        age(archive, *minutes);
    }
    let there = || -> Vec<bool> { archives.iter().map(|(a, _)| a.exists()).collect() };
    let noted = |ending: &str| {
        let entries = std::fs::read_dir(place.cache().join("sources")).unwrap();
        let is = |path: &Path| path.extension().is_some_and(|e| e == ending);
        entries.filter(|e| is(&e.as_ref().unwrap().path())).count()
    };
    evict_archives(&place.cache(), 5 << 20).unwrap();
    assert_eq!((there(), noted("json")), (vec![true; 4], 4));
    evict_archives(&place.cache(), 7 << 19).unwrap();
    assert_eq!(there(), [true, false, true, true]);
    assert_eq!((noted("json"), noted("notes")), (3, 3));
    // Archives that are in use or were used recently stay.
    evict_archives(&place.cache(), 0).unwrap();
    assert_eq!(there(), [true, false, false, true]);

    // A used archive counts as recent, and a removed one is created again.
    drop(first);
    let source = place.open(&work, Some("HEAD~3")).unwrap().source();
    drop(source.unwrap());
    evict_archives(&place.cache(), 0).unwrap();
    assert_eq!(there(), [true, false, false, true]);
    let again = place.open(&work, Some("HEAD~2")).unwrap().source().unwrap();
    assert_eq!(again.archive, archives[1].0);
    assert!(again.notes.iter().any(|note| note.contains("pointers")));
    assert_eq!(
        again
            .tree()
            .unwrap()
            .read("large.txt")
            .unwrap()
            .unwrap()
            .len(),
        1 << 20
    );
}

#[test]
fn archive_of_changed_files_is_held() {
    let place = TestRepository::new();
    let work = place.repository();
    let source = place.open(&work, None).unwrap().source().unwrap();
    let files = [("run.sh".to_owned(), Some(b"#!/bin/false\n".to_vec()))].into();
    let changed = source.with_changes(&files, &place.cache()).unwrap();
    for archive in [&source.archive, &changed.archive] {
        age(archive, 100);
    }
    let archive = source.archive.clone();
    drop(source);
    evict_archives(&place.cache(), 0).unwrap();
    assert!(changed.archive.exists() && !archive.exists());
    // A tree alone also holds the archive.
    let (archive, tree) = (changed.archive.clone(), changed.tree().unwrap());
    drop(changed);
    age(&archive, 100);
    evict_archives(&place.cache(), 0).unwrap();
    assert!(tree.read("run.sh").unwrap().is_some());
    drop(tree);
    evict_archives(&place.cache(), 0).unwrap();
    assert!(!archive.exists());
}
