//! Files designed to block their readers or to fill the memory.

use serde_json::json;

use super::*;
use crate::python::suggest;

fn pipe(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

/// Creates a sparse file of this size that uses no disk space.
fn sparse(path: &Path, bytes: u64) {
    fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

const TERABYTE: u64 = 1 << 40;

/// Runs work on another thread, so that a hang fails the test instead of blocking it.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    wait.recv_timeout(Duration::from_secs(120))
        .expect("it ends")
}

fn oversized(f: &mut Fixture) -> Vec<(String, Change, Option<u64>)> {
    let changes = f.workspace.changes().unwrap();
    assert!(
        changes
            .iter()
            .all(|c| c.oversized.is_none() || (c.now.is_none() && c.base.is_none()))
    );
    let summary = |c: FileChange| (c.path, c.change, c.oversized);
    changes.into_iter().map(summary).collect()
}

#[test]
fn hostile_file_sizes_are_reported_unread() {
    let large = vec![b'x'; 20 << 20];
    let files: &[(&str, &[u8])] = &[
        ("a.py", b"x = 1\n"),
        ("b.py", b"x = 1\n"),
        ("large", &large),
        ("same", &large),
        ("gone", &large),
    ];
    let mut f = Fixture::with(files, |root| sparse(&root.join("built.so"), TERABYTE));
    // A build product. The archive's own content is compared at any size.
    assert_eq!(f.changed(), []);
    let root = f.root();
    sparse(&root.join("a.py"), TERABYTE);
    sparse(&root.join("new"), TERABYTE);
    sparse(&root.join("small"), 3);
    fs::write(root.join("large"), "small").unwrap();
    fs::remove_file(root.join("gone")).unwrap();
    fs::write(root.join("b.py"), "x = 2\n").unwrap();
    let of = |path: &str, change, size| (path.to_owned(), change, size);
    assert_eq!(
        oversized(&mut f),
        [
            of("a.py", Change::Modified, Some(TERABYTE)),
            of("b.py", Change::Modified, None),
            of("gone", Change::Deleted, Some(20 << 20)),
            of("large", Change::Modified, Some(20 << 20)),
            of("new", Change::Added, Some(TERABYTE)),
            of("small", Change::Added, None),
        ]
    );
    let patch = f.text("show_patch", json!({}));
    assert!(patch.contains("+++ b/b.py"), "{patch}");
    assert!(!patch.contains("b/a.py"), "{patch}");
    assert!(patch.contains("new differs too, and is too large to be shown (1073741824 KiB).\n"));
    let state = f.answer("changes", json!({})).unwrap().data;
    assert_eq!(state["left_out"], json!(["a.py", "large", "new"]));
    assert_eq!(state["files"][1]["path"], "gone");
    assert_eq!(state["files"].as_array().unwrap().len(), 3);
    f.text("revert", json!({}));
    assert_eq!(f.changed(), []);
    assert_eq!(f.read("a.py"), "x = 1\n");
    assert!(!root.join("new").exists());
}

#[test]
fn hostile_many_large_files_are_reported_unread() {
    let mut f = Fixture::new(&[("a.py", b"x = 1\n")]);
    let root = f.root();
    for n in 0..10 {
        sparse(&root.join(format!("new{n}")), 15 << 20);
    }
    fs::write(root.join("a.py"), "x = 2\n").unwrap();
    let large_files = oversized(&mut f);
    // 128 MiB are read: tracked files first, then the others by name.
    let unread_paths: Vec<&str> = (large_files.iter())
        .filter(|(_, _, size)| size.is_some())
        .map(|(path, ..)| path.as_str())
        .collect();
    assert_eq!(
        (large_files.len(), unread_paths),
        (11, vec!["new8", "new9"])
    );
}

#[test]
fn hostile_ignore_files_are_skipped() {
    let mut f = Fixture::new(&[("a.py", b"x = 1\n"), ("sub/b.py", b"")]);
    let root = f.root();
    let paths = in_time(move || {
        pipe(&root.join(".gitignore"));
        sparse(&root.join("sub/.gitignore"), TERABYTE);
        for folder in ["link", "right"] {
            fs::create_dir(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("c.log"), "").unwrap();
        }
        fs::write(root.join("right/.gitignore"), "*.log\n").unwrap();
        symlink("../right/.gitignore", root.join("link/.gitignore")).unwrap();
        fs::write(root.join("new.py"), "").unwrap();
        f.changed()
            .into_iter()
            .map(|(path, _)| path)
            .collect::<Vec<_>>()
    });
    let expected = [
        "link/.gitignore",
        "link/c.log",
        "new.py",
        "right/.gitignore",
        "sub/.gitignore",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn hostile_sources_are_skipped_for_imports() {
    let f = Fixture::new(&[
        ("pkg/__init__.py", b""),
        ("pkg/a.py", b"class Thing: pass\n"),
    ]);
    let root = f.root();
    pipe(&root.join("x.py"));
    sparse(&root.join("y.py"), TERABYTE);
    symlink("/dev/zero", root.join("z.py")).unwrap();
    let suggestions = in_time(move || suggest(&root, &f.workspace.files(), "Thing"));
    assert_eq!(suggestions, ["from pkg.a import Thing"]);
}

/// Ignores the same files as git does.
#[test]
fn ignore_files_match_git() {
    let names = [
        "a.log",
        "keep.log",
        "build/x",
        "src/build/y",
        "docs/z.txt",
        "docs/build/w",
        "deep/a/b/c.tmp",
        "deep/a/keep.tmp",
        "out/in/x",
        "out/in/y",
        "sp ace",
        "#hash",
        "!bang",
        "trail ",
        "x/only",
        "y/x/only",
        "\u{e4}.log",
    ];
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &b""[..])).collect();
    let ignore: [(&str, &[u8]); 4] = [
        (".gitignore", b"\xef\xbb\xbf*.log\n!keep.log\n/build\ndocs/**/w\n# comment\n\\#hash\n\\!bang\nsp\\ ace\ntrail\\ \n[\n\n"),
        ("deep/.gitignore", b"*.tmp\r\n"),
        ("deep/a/.gitignore", b"!keep.tmp\n"),
        ("out/.gitignore", b"in/*\n!in/y\n"),
    ];
    let extra: [(&str, &[u8]); 1] = [("y/.gitignore", b"/x/\n")];
    let mut f = Fixture::with(&[], |_| {});
    let root = f.root();
    for (name, content) in files.iter().chain(&ignore).chain(&extra) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let changed_paths: Vec<String> = f.changed().into_iter().map(|(path, _)| path).collect();
    git(&root, &["init", "-q"]);
    let listed = Command::new("git")
        .args([
            "-c",
            "core.excludesFile=/dev/null",
            "ls-files",
            "-z",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(&root)
        .output()
        .unwrap();
    let mut listed: Vec<String> = (String::from_utf8(listed.stdout).unwrap().split('\0'))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    listed.sort();
    assert_eq!(changed_paths, listed);
}
