//! Tests of patches of all kinds, made by git or written by hand.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::repository::{OpenOptions, Source, apply_check, open};

struct TestRepository {
    folder: tempfile::TempDir,
}

const TEN: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

impl TestRepository {
    fn new() -> TestRepository {
        let place = TestRepository {
            folder: tempfile::tempdir().unwrap(),
        };
        place.git(&["init", "-q"]);
        place.write("a.py", TEN.as_bytes());
        place.write("dos.txt", TEN.replace('\n', "\r\n").as_bytes());
        place.write("open.txt", b"first\nlast without an end");
        place.write("dir/with blank.py", b"x = 1\n");
        place.write("dir/\u{e4}.py", "y = '\u{e4}'\n".as_bytes());
        place.write("run.sh", b"#!/bin/sh\n");
        place.write("bytes.bin", &(0..=255).collect::<Vec<u8>>().repeat(8));
        std::os::unix::fs::symlink("a.py", place.work_folder().join("link")).unwrap();
        std::os::unix::fs::symlink("/tmp", place.work_folder().join("away")).unwrap();
        place.git(&["add", "-A"]);
        place.git(&["commit", "-q", "-m", "base"]);
        place
    }

    fn work_folder(&self) -> PathBuf {
        let work = self.folder.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        work
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.work_folder().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.work_folder())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the uncommitted changes as a git patch, and resets the work tree.
    fn diff(&self, options: &[&str]) -> String {
        self.git(&["add", "-A"]);
        let patch = self.git(&[&["diff", "--cached", "--binary"], options].concat());
        self.git(&["reset", "-q", "--hard"]);
        patch
    }

    fn source(&self) -> Source {
        let work = self.work_folder();
        let options = OpenOptions::default();
        let repository = open(work.to_str().unwrap(), None, &self.cache(), &options);
        repository.unwrap().source().unwrap()
    }

    fn apply(&self, patch: &str) -> std::result::Result<AppliedPatch, String> {
        let tree = self.source().tree().unwrap();
        apply(&tree, &Files::new(), patch).unwrap()
    }

    fn exactly(&self, patch: &str) -> Files {
        let applied = self.apply(patch).unwrap();
        assert_eq!(applied.notes, Vec::<String>::new());
        applied.files
    }
}

fn file(content: impl AsRef<[u8]>, kind: FileKind) -> Option<File> {
    let content = content.as_ref().to_vec();
    Some(File { content, kind })
}

fn plain(content: impl AsRef<[u8]>) -> Option<File> {
    file(content, FileKind::Plain)
}

fn files<const N: usize>(list: [(&str, Option<File>); N]) -> Files {
    list.map(|(path, file)| (path.to_owned(), file)).into()
}

const PATCH: &str = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -4,5 +4,6 @@ three\n \
                     four\n five\n six\n+six and a half\n seven\n eight\n";

fn patched() -> String {
    TEN.replace("six\n", "six\nsix and a half\n")
}

#[test]
fn clean_patch_applies_exactly() {
    let place = TestRepository::new();
    assert_eq!(place.exactly(PATCH), files([("a.py", plain(patched()))]));
    // A patch also applies on top of earlier changes.
    let tree = place.source().tree().unwrap();
    let before = files([("a.py", plain(patched())), ("new.py", plain("n\n"))]);
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -6,3 +6,2 @@\n six\n-six and a half\n seven\n\
                 --- a/new.py\n+++ b/new.py\n@@ -1 +1 @@\n-n\n+m\n";
    let after = apply(&tree, &before, patch).unwrap().unwrap();
    assert_eq!(after.notes, Vec::<String>::new());
    assert_eq!(
        after.files,
        files([("a.py", plain(TEN)), ("new.py", plain("m\n"))])
    );
    let deletion = files([("a.py", None)]);
    assert!(apply(&tree, &deletion, PATCH).unwrap().is_err());
    let put_back = "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(
        apply(&tree, &deletion, put_back).unwrap().unwrap().files,
        files([("a.py", plain("x\n"))])
    );
}

#[test]
fn text_around_headers_is_ignored() {
    let place = TestRepository::new();
    let expected = files([("a.py", plain(patched()))]);
    let bare = PATCH.split_once('\n').unwrap().1;
    assert_eq!(place.exactly(bare), expected, "no `diff --git`");
    let around = format!("Here is the patch:\n\n{PATCH}-- \n2.40\n\nThat is all.\n");
    assert_eq!(place.exactly(&around), expected);
    let fenced = format!("```diff\n{PATCH}```\n");
    assert_eq!(place.exactly(&fenced), expected);

    let cut = place.apply(PATCH.trim_end_matches('\n')).unwrap();
    assert_eq!(cut.files, expected);
    assert_eq!(cut.notes, ["the patch's last line had no line end"]);

    for nothing in ["", " \n", "no patch at all", "diff --git a/a.py b/a.py\n"] {
        assert!(place.apply(nothing).is_err(), "{nothing}");
    }
}

#[test]
fn differing_line_ends_are_accepted() {
    let place = TestRepository::new();
    // The patch has carriage returns, the file does not.
    let applied = place.apply(&PATCH.replace('\n', "\r\n")).unwrap();
    assert_eq!(applied.files, files([("a.py", plain(patched()))]));
    assert_eq!(
        applied.notes,
        ["carriage returns at the ends of the patch's lines were ignored"]
    );
    // The file has carriage returns. One patch is as git writes it, the other has lost them.
    let dos = patched().replace('\n', "\r\n");
    place.write("dos.txt", dos.as_bytes());
    let patch = place.diff(&[]);
    assert!(patch.contains("+six and a half\r\n"));
    assert_eq!(place.exactly(&patch), files([("dos.txt", plain(&dos))]));
    let applied = place.apply(&patch.replace('\r', "")).unwrap();
    assert_eq!(applied.notes, ["differences in whitespace were ignored"]);
    assert_eq!(
        applied.files,
        files([("dos.txt", plain(dos.replace("half\r\n", "half\n")))])
    );
    // The last line has no line end, before and after.
    place.write("open.txt", b"first\nother without an end");
    place.write("a.py", TEN.trim_end().as_bytes());
    let patch = place.diff(&[]);
    assert!(patch.contains("\\ No newline at end of file"));
    assert_eq!(
        place.exactly(&patch),
        files([
            ("open.txt", plain("first\nother without an end")),
            ("a.py", plain(TEN.trim_end())),
        ])
    );
}

#[test]
fn whitespace_and_fuzz_are_tolerated() {
    let place = TestRepository::new();
    let spaced =
        "--- a/dir/with blank.py\n+++ b/dir/with blank.py\n@@ -1 +1,2 @@\n x   = 1\n+y = 2\n";
    assert!(apply_check(&place.source(), spaced).unwrap().is_err());
    let applied = place.apply(spaced).unwrap();
    assert_eq!(
        applied.files,
        files([("dir/with blank.py", plain("x = 1\ny = 2\n"))])
    );
    assert_eq!(applied.notes, ["differences in whitespace were ignored"]);

    let fuzzy = PATCH.replace(" four\n", " quatre\n");
    let applied = place.apply(&fuzzy).unwrap();
    assert_eq!(applied.files, files([("a.py", plain(patched()))]));
    assert!(
        applied.notes[0].contains("with fuzz"),
        "{:?}",
        applied.notes
    );

    // A partly applicable patch is rejected as a whole.
    let second = "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-#!/bin/bash\n+#!/bin/dash\n";
    let reason = place.apply(&format!("{fuzzy}{second}")).unwrap_err();
    assert!(reason.contains("patch failed: a.py"), "{reason}");
    // An already applied patch is not reverted.
    place.write("a.py", patched().as_bytes());
    place.git(&["commit", "-q", "-a", "-m", "patched"]);
    assert!(place.apply(PATCH).is_err());
}

#[test]
fn files_are_added_deleted_renamed() {
    let place = TestRepository::new();
    place.write("sub/new.py", b"n = 1\n");
    place.write("sub/empty.py", b"");
    std::fs::remove_file(place.work_folder().join("dos.txt")).unwrap();
    place.git(&["mv", "a.py", "sub/moved.py"]);
    place.write("sub/moved.py", patched().as_bytes());
    place.git(&["mv", "dir/with blank.py", "dir/other blank.py"]);
    place.write("dir/\u{e4}.py", b"y = 2\n");
    place.git(&["mv", "dir/\u{e4}.py", "dir/\u{f6}.py"]);
    std::fs::copy(
        place.work_folder().join("bytes.bin"),
        place.work_folder().join("copy.bin"),
    )
    .unwrap();
    let expected = files([
        ("sub/new.py", plain("n = 1\n")),
        ("sub/empty.py", plain("")),
        ("dos.txt", None),
        ("a.py", None),
        ("sub/moved.py", plain(patched())),
        ("dir/with blank.py", None),
        ("dir/other blank.py", plain("x = 1\n")),
        ("dir/\u{e4}.py", None),
        ("dir/\u{f6}.py", plain("y = 2\n")),
        ("copy.bin", plain((0..=255).collect::<Vec<u8>>().repeat(8))),
    ]);
    let patch = place.diff(&["-M", "-C", "--find-copies-harder"]);
    for sign in [
        "rename from a.py",
        "copy from bytes.bin",
        "deleted file mode",
        "\\303\\244",
    ] {
        assert!(patch.contains(sign), "{sign}\n{patch}");
    }
    assert_eq!(place.exactly(&patch), expected);
}

#[test]
fn modes_links_and_bytes_apply() {
    let place = TestRepository::new();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.work_folder().join("run.sh"), executable).unwrap();
    let mut bytes = (0..=255).collect::<Vec<u8>>().repeat(8);
    bytes[700] = 0;
    place.write("bytes.bin", &bytes);
    place.write("new.bin", b"\0\xff\xfe");
    std::fs::remove_file(place.work_folder().join("link")).unwrap();
    std::os::unix::fs::symlink("run.sh", place.work_folder().join("link")).unwrap();
    std::os::unix::fs::symlink("dir", place.work_folder().join("more")).unwrap();
    let patch = place.diff(&[]);
    assert!(patch.contains("GIT binary patch") && patch.contains("new mode 100755"));
    let changed = place.exactly(&patch);
    assert_eq!(
        changed,
        files([
            ("run.sh", file("#!/bin/sh\n", FileKind::Executable)),
            ("bytes.bin", plain(&bytes)),
            ("new.bin", plain(b"\0\xff\xfe")),
            ("link", file("run.sh", FileKind::Link)),
            ("more", file("dir", FileKind::Link)),
        ])
    );

    // The derived source contains exactly these changes.
    let source = place.source();
    let new = source.with_files(&changed, &place.cache()).unwrap();
    let tree = new.tree().unwrap();
    for (path, file) in &changed {
        assert_eq!(&tree.file(path).unwrap(), file, "{path}");
    }
    assert_eq!(tree.text("a.py").unwrap().unwrap(), TEN);
}

#[test]
fn paths_outside_tree_are_rejected() {
    let place = TestRepository::new();
    let new = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
    for path in [
        "../out.py",
        "x/../../out.py",
        "/tmp/out.py",
        ".git/config",
        "dir/.GIT/x",
    ] {
        assert!(place.apply(&new(path)).is_err(), "{path}");
    }
    // Neither a link in the repository nor one in the patch can be followed.
    let name = format!("testwright-{}", std::process::id());
    let through = new(&format!("away/{name}"));
    assert!(place.apply(&through).is_err());
    let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/tmp\n\
                \\ No newline at end of file\n";
    let link_patch = format!("{link}{}", new(&format!("l/{name}")));
    assert!(place.apply(&link_patch).is_err());
    assert!(!Path::new("/tmp").join(name).exists());
    // A folder cannot be patched as a file, and an `ed` script is not accepted as a patch.
    assert!(place.apply(&new("dir")).is_err());
    let witness = place.folder.path().join("witness");
    let script = format!(
        "--- a/a.py\n+++ b/a.py\n1d\n!touch {}\nw\nq\n",
        witness.display()
    );
    assert!(place.apply(&script).is_err());
    assert!(!witness.exists());
}

#[test]
fn changed_source_differs() {
    let place = TestRepository::new();
    let source = place.source();
    let text = |t: &str| Some(t.as_bytes().to_vec());
    let changes: BTreeMap<String, Option<Vec<u8>>> = [
        ("a.py".to_owned(), text("changed\n")),
        ("new/deep/x.py".to_owned(), text("new\n")),
        ("dos.txt".to_owned(), None),
        ("never was".to_owned(), None),
    ]
    .into();
    let changed = source.with_changes(&changes, &place.cache()).unwrap();
    assert_ne!(changed.digest, source.digest);
    assert_eq!(
        (&changed.name, &changed.commit, &changed.date),
        (&source.name, &source.commit, &source.date)
    );
    let tree = changed.tree().unwrap();
    assert_eq!(tree.text("a.py").unwrap().unwrap(), "changed\n");
    assert_eq!(tree.text("new/deep/x.py").unwrap().unwrap(), "new\n");
    assert!(!tree.contains("dos.txt") && tree.contains("link"));
    assert_eq!(tree.paths().count(), source.tree().unwrap().paths().count());
    // The same changes give the same archive, and other changes on the same base give another one.
    let again = source.with_changes(&changes, &place.cache()).unwrap();
    assert_eq!(again, changed);
    let mut other = changes.clone();
    other.insert("a.py".to_owned(), text("otherwise\n"));
    let other = source.with_changes(&other, &place.cache()).unwrap();
    assert!(other.digest != changed.digest && other.archive != changed.archive);
    // Changes without effect return the same source.
    let same = [("a.py".to_owned(), text(TEN)), ("none".to_owned(), None)].into();
    assert_eq!(source.with_changes(&same, &place.cache()).unwrap(), source);
    let odd = [("../x".to_owned(), text(""))].into();
    assert!(source.with_changes(&odd, &place.cache()).is_err());
    // File modes are kept.
    let run = [("run.sh".to_owned(), text("#!/bin/dash\n"))].into();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.work_folder().join("run.sh"), mode).unwrap();
    place.git(&["commit", "-q", "-a", "-m", "mode"]);
    let changed = place.source().with_changes(&run, &place.cache()).unwrap();
    assert_eq!(
        changed.tree().unwrap().file("run.sh").unwrap(),
        file("#!/bin/dash\n", FileKind::Executable)
    );
}

/// The fix also moves the pointer of a submodule whose files are not available.
#[test]
fn submodule_pointers_move_as_in_git() {
    let place = TestRepository::new();
    let pointer = |hash: &str| {
        let entry = format!("160000,{},libs/other", hash.repeat(40));
        place.git(&["update-index", "--add", "--cacheinfo", &entry]);
    };
    pointer("1");
    place.git(&["commit", "-q", "-m", "with a submodule"]);
    let source = place.source();
    place.write("a.py", TEN.replace("five", "FIVE").as_bytes());
    place.git(&["add", "a.py"]);
    pointer("2");
    let moved = place.git(&["diff", "--cached"]);
    assert!(moved.contains("Subproject commit 2222"), "{moved}");
    place.git(&["rm", "-q", "--cached", "libs/other"]);
    let removed = place.git(&["diff", "--cached"]);
    assert!(removed.contains("deleted file mode 160000"), "{removed}");
    let tree = source.tree().unwrap();
    for patch in [moved, removed] {
        let applied = apply(&tree, &Files::new(), &patch).unwrap().unwrap();
        assert_eq!(applied.notes, Vec::<String>::new(), "{patch}");
        assert_eq!(applied.files.keys().collect::<Vec<_>>(), ["a.py"]);
        assert_eq!(apply_check(&source, &patch).unwrap(), Ok(()));
    }
    // No folder is created where a link points.
    let name = format!("testwright-{}", std::process::id());
    let beyond = format!(
        "diff --git a/away/{name} b/away/{name}\nindex 1111111..2222222 160000\n\
         --- a/away/{name}\n+++ b/away/{name}\n@@ -1 +1 @@\n\
         -Subproject commit {}\n+Subproject commit {}\n",
        "1".repeat(40),
        "2".repeat(40)
    );
    assert!(apply(&tree, &Files::new(), &beyond).unwrap().is_err());
    assert!(!Path::new("/tmp").join(name).exists());
}
