//! Real repositories, made by git in temporary folders.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::error::ErrorKind;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// A repository with one commit per call of `commit`.
    fn repository(&self) -> PathBuf {
        let work = self.path("project");
        std::fs::create_dir_all(work.join("pkg")).unwrap();
        git(&work, &["init", "-q", "-b", "main"]);
        write(&work, "pkg/__init__.py", "__version__ = '1.2'\n");
        write(&work, "tests/test_a.py", "def test_a():\n    assert True\n");
        write(
            &work,
            ".gitattributes",
            "tests export-ignore\npkg/version.txt export-subst\n*.bat eol=crlf\n",
        );
        write(&work, "pkg/version.txt", "$Format:%H$\n");
        write(&work, "run.sh", "#!/bin/sh\n");
        set_mode(&work.join("run.sh"), 0o755);
        std::os::unix::fs::symlink("pkg/version.txt", work.join("link")).unwrap();
        let deep = format!("{}/x.py", "deep".repeat(40));
        write(&work, &deep, "x = 1\n");
        commit(&work, "first");
        git(&work, &["tag", "v1.2"]);
        work
    }

    fn open(&self, location: &Path, revision: Option<&str>) -> Result<Repository> {
        open(
            location.to_str().unwrap(),
            revision,
            &self.cache(),
            &OpenOptions::default(),
        )
    }

    fn source(&self, location: &Path, revision: Option<&str>) -> Source {
        self.open(location, revision).unwrap().source().unwrap()
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .current_dir(folder)
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(arguments)
        .env("GIT_COMMITTER_DATE", "2020-02-03T04:05:06Z")
        .env("GIT_AUTHOR_DATE", "2020-02-03T04:05:06Z")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn write(folder: &Path, path: &str, content: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn commit(folder: &Path, message: &str) -> String {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", message]);
    git(folder, &["rev-parse", "HEAD"])
}

fn paths(source: &Source) -> Vec<String> {
    source.tree().unwrap().paths().map(str::to_owned).collect()
}

#[test]
fn the_archive_is_the_whole_commit() {
    let place = Place::new();
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

    // A tag that comes later is seen.
    git(&work, &["tag", "-a", "v1.3", "-m", "later"]);
    assert_eq!(place.source(&work, None).describe.as_deref(), Some("v1.3"));
}

#[test]
fn the_same_files_have_the_same_digest() {
    let place = Place::new();
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
    // A plain folder with these files is the same old code.
    std::fs::remove_dir_all(work.join(".git")).unwrap();
    let plain = place.source(&work, None);
    assert_eq!(plain.digest, first.digest);
    assert_eq!((plain.commit, plain.date), (None, None));
}

#[test]
fn uncommitted_changes_are_left_out_and_said_so() {
    let place = Place::new();
    let work = place.repository();
    let clean = place.source(&work, None);
    write(&work, "pkg/__init__.py", "changed = 1\n");
    write(&work, "pkg/new.py", "");
    let source = place.source(&work, None);
    assert_eq!(source.digest, clean.digest);
    assert_eq!(
        source.notes,
        ["2 uncommitted changes were left out: the old code is the commit"]
    );
    // Who names the commit knows.
    assert!(place.source(&work, Some("v1.2")).notes.is_empty());
}

#[test]
fn bare_repositories_and_subfolders() {
    let place = Place::new();
    let work = place.repository();
    let first = git(&work, &["rev-parse", "HEAD"]);
    write(&work, "examples/one/setup.py", "");
    write(&work, "examples/one/one/__init__.py", "");
    commit(&work, "second");
    let bare = place.path("some+thing/repo");
    git(
        place.folder.path(),
        &["clone", "-q", "--bare", "project", bare.to_str().unwrap()],
    );
    let source = place.source(&bare, Some(&first[..10]));
    assert_eq!(source.commit.as_deref(), Some(first.as_str()));
    assert!(!paths(&source).contains(&"examples/one/setup.py".to_owned()));

    let sub = place.source(&work.join("examples/one"), None);
    assert_eq!(paths(&sub), ["one/__init__.py", "setup.py"]);
    assert_eq!(sub.name, "one");
    assert!(sub.commit.is_some());
    // Not in the commit: taken as it is.
    write(&work, "examples/two/two.py", "");
    let two = place.source(&work.join("examples/two"), None);
    assert_eq!(paths(&two), ["two.py"]);
    assert!(
        two.commit.is_none() && two.notes[0].contains("not tracked"),
        "{:?}",
        two.notes
    );
}

#[test]
fn a_plain_folder_follows_gitignore() {
    let place = Place::new();
    let folder = place.path("plain");
    write(&folder, "a.py", "a\r\n");
    write(&folder, ".gitignore", "*.log\nbuild/\n");
    write(
        &folder,
        ".gitattributes",
        "* text=auto\n*.py filter=upper\n",
    );
    write(&folder, "x.log", "");
    write(&folder, "build/b.py", "");
    let source = place.source(&folder, None);
    assert_eq!(paths(&source), [".gitattributes", ".gitignore", "a.py"]);
    assert_eq!(
        source.tree().unwrap().read("a.py").unwrap().unwrap(),
        b"a\r\n"
    );
    assert!(!folder.join(".git").exists());
    let error = place.open(&folder, Some("main")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
}

#[test]
fn an_unknown_revision_names_the_nearest() {
    let place = Place::new();
    let work = place.repository();
    git(&work, &["branch", "release-1"]);
    let error = place.open(&work, Some("relaese-1")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(error.message.contains("`relaese-1`"), "{}", error.message);
    assert!(error.hint.unwrap().contains("`release-1`"));
    assert_eq!(
        place.open(&work, Some("--all")).unwrap_err().kind,
        ErrorKind::Input
    );
    assert_eq!(
        place.open(&place.path("nowhere"), None).unwrap_err().kind,
        ErrorKind::Input
    );
}

#[test]
fn a_url_is_cloned_once_and_fetched_again_for_what_is_new() {
    let place = Place::new();
    let work = place.repository();
    let first = git(&work, &["rev-parse", "HEAD"]);
    let url = format!("file://{}", work.display());
    let source = |revision: Option<&str>| {
        open(&url, revision, &place.cache(), &OpenOptions::default()).and_then(|r| r.source())
    };
    assert_eq!(
        source(None).unwrap().commit.as_deref(),
        Some(first.as_str())
    );
    write(&work, "pkg/b.py", "b = 1\n");
    let second = commit(&work, "second");
    // The head moved, and is followed.
    let moved = source(None).unwrap();
    assert_eq!(moved.commit.as_deref(), Some(second.as_str()));
    assert!(paths(&moved).contains(&"pkg/b.py".to_owned()));
    assert_eq!(
        moved.describe.as_deref().map(|d| d.starts_with("v1.2-1-g")),
        Some(true)
    );
    // A commit that no branch holds any more.
    git(&work, &["reset", "-q", "--hard", &first]);
    git(&work, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    git(&work, &["branch", "other"]);
    assert_eq!(source(Some(&second)).unwrap().digest, moved.digest);
    assert_eq!(
        source(Some("other")).unwrap().commit.as_deref(),
        Some(first.as_str())
    );
    assert!(
        source(Some("othre"))
            .unwrap_err()
            .hint
            .unwrap()
            .contains("`other`")
    );
    // Gone: what is known still works, and says so.
    std::fs::rename(&work, place.path("away")).unwrap();
    assert!(source(Some(&first)).unwrap().notes.is_empty());
    assert!(source(None).unwrap().notes[0].contains("cache"));
    let offline = OpenOptions {
        offline: true,
        ..OpenOptions::default()
    };
    assert!(open(&url, None, &place.cache(), &offline).is_ok());
    assert!(
        open(
            "file:///not/there",
            None,
            &place.cache(),
            &OpenOptions::default()
        )
        .is_err()
    );
}

#[test]
fn a_clone_without_blobs_gets_them_for_the_archive() {
    let place = Place::new();
    let work = place.repository();
    git(&work, &["config", "uploadpack.allowFilter", "true"]);
    git(&work, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", work.display());
    let repository = open(&url, None, &place.cache(), &OpenOptions::default()).unwrap();
    let missing = repository
        .git
        .run([
            "rev-list",
            "--objects",
            "--missing=print",
            "--no-object-names",
            "--all",
        ])
        .unwrap();
    assert!(
        String::from_utf8_lossy(&missing).contains('?'),
        "the clone is not a partial one"
    );
    assert_eq!(
        repository.source().unwrap().digest,
        place.source(&work, None).digest
    );
}

#[test]
fn hooks_and_monitors_of_the_repository_do_not_run() {
    let place = Place::new();
    let work = place.repository();
    let trap = place.path("trap.sh");
    let sprung = place.path("sprung");
    std::fs::write(&trap, format!("#!/bin/sh\ntouch {}\n", sprung.display())).unwrap();
    set_mode(&trap, 0o755);
    git(&work, &["config", "core.fsmonitor", trap.to_str().unwrap()]);
    git(
        &work,
        &["config", "core.sshCommand", trap.to_str().unwrap()],
    );
    place.source(&work, None);
    assert!(!sprung.exists());
}

#[test]
fn submodules_are_noted() {
    let place = Place::new();
    let work = place.repository();
    let inner = place.path("inner");
    write(&inner, "i.py", "");
    git(&inner, &["init", "-q"]);
    commit(&inner, "inner");
    git(
        &work,
        &[
            "submodule",
            "--quiet",
            "add",
            inner.to_str().unwrap(),
            "vendored",
        ],
    );
    commit(&work, "with a submodule");
    let source = place.source(&work, None);
    assert_eq!(source.notes, ["submodules are left empty: vendored"]);
}

#[test]
fn a_mirror_without_some_content_is_read_without_it() {
    let place = Place::new();
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
            ["files whose content the repository does not have were left out: run.sh"]
        );
        assert!(!paths(&source).contains(&"run.sh".to_owned()));
        digests.push(source.digest);
    }
    // Once it is there, the commit is whole again, and other code than before.
    std::fs::rename(place.path("away"), &object).unwrap();
    let whole = place.source(&work, None);
    assert!(whole.notes.is_empty() && paths(&whole).contains(&"run.sh".to_owned()));
    assert!(digests[0] == digests[1] && digests[0] != whole.digest);
}

#[test]
fn a_patch_is_held_against_the_clean_base() {
    let place = Place::new();
    let work = place.repository();
    let source = place.source(&work, None);
    let patch = "diff --git a/tests/test_a.py b/tests/test_a.py\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n\
                 @@ -1,2 +1,4 @@\n def test_a():\n     assert True\n+def test_b():\n+    assert True\n";
    assert_eq!(apply_check(&source, patch).unwrap(), Ok(()));
    let new = "diff --git a/tests/new.py b/tests/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/tests/new.py\n@@ -0,0 +1 @@\n+x = 1\n";
    assert_eq!(apply_check(&source, new).unwrap(), Ok(()));

    let wrong = apply_check(&source, &patch.replace("assert True\n+", "assert False\n+"))
        .unwrap()
        .unwrap_err();
    assert!(wrong.contains("tests/test_a.py"), "{wrong}");
    let exists = apply_check(&source, &new.replace("tests/new.py", "tests/test_a.py"))
        .unwrap()
        .unwrap_err();
    assert!(exists.contains("already exists"), "{exists}");
    let absent = apply_check(&source, &patch.replace("test_a.py", "test_z.py"))
        .unwrap()
        .unwrap_err();
    assert!(absent.contains("test_z.py"), "{absent}");
    assert!(apply_check(&source, "").unwrap().is_err());
    let outside = new.replace("tests/new.py", "../new.py");
    assert!(apply_check(&source, &outside).unwrap().is_err());
}

#[test]
fn names_come_from_remotes() {
    for (url, name) in [
        ("https://github.com/psf/requests.git", "psf/requests"),
        ("https://github.example.org/psf/requests/", "psf/requests"),
        ("git@github.com:psf/requests.git", "psf/requests"),
        ("ssh://git@host:22/psf/requests", "psf/requests"),
        ("/mirrors/psf+requests/repo", "psf/requests"),
        ("file:///mirrors/psf+requests/repo/", "psf/requests"),
    ] {
        assert_eq!(repository_name::name_of(url, "x"), name, "{url}");
    }
    assert!(resolve::is_url("git@github.com:psf/requests.git"));
    assert!(!resolve::is_url("a/b:c"));
}

/// As if it had not been used for so long.
fn age(archive: &Path, minutes: u64) {
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(60 * minutes);
    std::fs::File::open(archive)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[test]
fn archives_that_were_used_longest_ago_make_room() {
    let place = Place::new();
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
    make_room(&place.cache(), 5 << 20).unwrap();
    assert_eq!((there(), noted("json")), (vec![true; 4], 4));
    make_room(&place.cache(), 7 << 19).unwrap();
    assert_eq!(there(), [true, false, true, true]);
    assert_eq!((noted("json"), noted("notes")), (3, 3));
    // What is held stays, and what was used a short time ago.
    make_room(&place.cache(), 0).unwrap();
    assert_eq!(there(), [true, false, false, true]);

    // Used is young, and gone is made again.
    drop(first);
    let source = place.open(&work, Some("HEAD~3")).unwrap().source();
    drop(source.unwrap());
    make_room(&place.cache(), 0).unwrap();
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
fn an_archive_of_changed_files_is_held_too() {
    let place = Place::new();
    let work = place.repository();
    let source = place.open(&work, None).unwrap().source().unwrap();
    let files = [("run.sh".to_owned(), Some(b"#!/bin/false\n".to_vec()))].into();
    let changed = source.with_changes(&files, &place.cache()).unwrap();
    for archive in [&source.archive, &changed.archive] {
        age(archive, 100);
    }
    let archive = source.archive.clone();
    drop(source);
    make_room(&place.cache(), 0).unwrap();
    assert!(changed.archive.exists() && !archive.exists());
    // By its tree alone, too.
    let (archive, tree) = (changed.archive.clone(), changed.tree().unwrap());
    drop(changed);
    age(&archive, 100);
    make_room(&place.cache(), 0).unwrap();
    assert!(tree.read("run.sh").unwrap().is_some());
    drop(tree);
    make_room(&place.cache(), 0).unwrap();
    assert!(!archive.exists());
}
