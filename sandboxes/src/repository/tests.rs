//! Tests with real repositories, made by git in temporary folders.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod archives;
mod clones;
mod history;
mod work_trees;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::error::ErrorKind;

struct TestRepository {
    folder: TempDir,
}

impl TestRepository {
    fn new() -> TestRepository {
        TestRepository {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// Creates a repository with one commit and a tag.
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
fn uncommitted_changes_are_ignored_and_noted() {
    let place = TestRepository::new();
    let work = place.repository();
    let clean = place.source(&work, None);
    write(&work, "pkg/__init__.py", "changed = 1\n");
    write(&work, "pkg/new.py", "");
    write(&work, "testwright-runs/.gitignore", "*\n");
    write(&work, "testwright-runs/run/run.json", "");
    let source = place.source(&work, None);
    assert_eq!(source.digest, clean.digest);
    assert_eq!(
        source.notes,
        [
            "1 uncommitted change (pkg/__init__.py) and 1 untracked file (pkg/new.py) were ignored: \
             the old code is that of the commit"
        ]
    );
    // A caller that gives the commit needs no note.
    assert!(place.source(&work, Some("v1.2")).notes.is_empty());
}

#[test]
fn bare_repositories_and_subfolders_open() {
    let place = TestRepository::new();
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
    // Untracked folders are used as they are.
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
fn plain_folder_respects_gitignore() {
    let place = TestRepository::new();
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
fn unknown_revision_suggests_nearest() {
    let place = TestRepository::new();
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
fn repository_hooks_do_not_run() {
    let place = TestRepository::new();
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
fn checked_out_submodules_are_included() {
    let place = TestRepository::new();
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
    assert_eq!(source.notes, [""; 0]);
    let tree = source.tree().unwrap();
    assert!(tree.contains("vendored/i.py"));

    // The same commit without the checkout is other code.
    std::fs::remove_dir_all(work.join("vendored")).unwrap();
    let empty = place.source(&work, None);
    let note = "submodules were left empty: vendored (to include them";
    assert!(empty.notes[0].starts_with(note), "{:?}", empty.notes);
    assert!(!empty.tree().unwrap().contains("vendored/i.py"));
    assert_ne!(empty.digest, source.digest);

    // A link in its place leads to another repository of the user.
    std::os::unix::fs::symlink(&inner, work.join("vendored")).unwrap();
    assert!(place.source(&work, None).notes[0].starts_with(note));
}

#[test]
fn patch_is_checked_against_clean_base() {
    let place = TestRepository::new();
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
fn names_derive_from_remotes() {
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

#[test]
fn cache_below_folder_is_left_out() {
    let place = TestRepository::new();
    write(place.folder.path(), "a.py", "a = 1\n");
    write(&place.cache(), "local/build-1.lock", "");
    write(&place.cache(), "b.py", "b = 1\n");
    let source = place.source(place.folder.path(), None);
    let tree = source.tree().unwrap();
    let is_file = |path: &&str| path.contains('.');
    assert_eq!(tree.paths().filter(is_file).collect::<Vec<_>>(), ["a.py"]);
}
