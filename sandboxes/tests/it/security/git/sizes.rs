//! Tests of small repositories that unpack to large ones.

use std::process::Stdio;

use testwright_sandboxes::error::ErrorKind;

use super::addresses::addresses;
use super::*;

/// Writes a blob of `bytes` zeros without holding it in memory.
fn zeros(work: &Path, bytes: u64) -> String {
    let zeros = std::io::Read::take(std::io::repeat(0), bytes);
    hash_object(work, &["-w"], zeros)
}

/// Returns the name of a blob with this content.
pub(super) fn hash_object(
    folder: &Path,
    words: &[&str],
    mut content: impl std::io::Read,
) -> String {
    let mut child = Command::new("git")
        .current_dir(folder)
        .args(["-c", "core.bigFileThreshold=1m", "hash-object"])
        .args(["--stdin", "--no-filters"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::copy(&mut content, &mut stdin).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Creates a branch `main` with one commit of a tree, in the format of `git mktree`.
pub(super) fn commit_tree(work: &Path, lines: &str) {
    let tree = git_with(work, &["mktree", "--missing"], lines);
    let commit = git(work, &["commit-tree", "-m", "hostile", &tree]);
    git(work, &["update-ref", "refs/heads/main", &commit]);
}

/// Writes a tree object as given, which `git mktree` would reject.
fn raw_tree(work: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut content = Vec::new();
    for (mode, name, hash) in entries {
        content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        let digits = hash.as_bytes().chunks(2);
        content.extend(
            digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()),
        );
    }
    let file = work.join("tree.bin");
    std::fs::write(&file, content).unwrap();
    let path = file.to_str().unwrap();
    git(
        work,
        &["hash-object", "-t", "tree", "-w", "--literally", path],
    )
}

fn commit_raw(work: &Path, entries: &[(&str, &str, &str)]) {
    let tree = raw_tree(work, entries);
    let commit = git(work, &["commit-tree", "-m", "hostile", &tree]);
    git(work, &["update-ref", "refs/heads/main", &commit]);
}

/// The result of opening a repository in a separate program.
#[derive(Debug)]
pub(super) struct Opened {
    /// Peak memory of the program and its git processes, in MiB.
    pub peak: i64,
    /// Length of the archive, its files and the notes, or the error.
    pub said: String,
}

const LOCATION: &str = "TESTWRIGHT_TEST_LOCATION";
const CACHE: &str = "TESTWRIGHT_TEST_CACHE";

/// Runs the named test in a separate program, which opens a repository with this cache. Returns `None` in that program.
pub(super) fn opened_apart(test: &str, location: Option<(&str, &Path)>) -> Option<Opened> {
    if let (Ok(location), Some(cache)) = (std::env::var(LOCATION), std::env::var_os(CACHE)) {
        let opened = open(
            &location,
            Some("main"),
            Path::new(&cache),
            &OpenOptions::default(),
        );
        match opened.and_then(|repository| repository.source()) {
            Ok(source) => {
                let length = std::fs::metadata(&source.archive).unwrap().len() >> 20;
                let (files, notes) = (paths(&source).join(" "), source.notes.join("\n"));
                println!("said: {length} MiB, files: {files}\n{notes}");
            }
            Err(error) => println!("said: {:?} {error}", error.kind),
        }
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let own = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let own = own.unwrap().trim().trim_end_matches(" kB");
        let peak = usage.unwrap().max_rss().max(own.parse().unwrap()) / 1024;
        println!("peak: {peak}.");
        return None;
    }
    let none = Opened {
        peak: 0,
        said: String::new(),
    };
    let Some((location, cache)) = location else {
        return Some(none);
    };
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(LOCATION, location)
        .env(CACHE, cache)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let opened = text.split_once("said: ").and_then(|(_, text)| {
        let (message, rest) = text.split_once("peak: ")?;
        Some(Opened {
            peak: rest.split_once('.')?.0.parse().ok()?,
            said: message.to_owned(),
        })
    });
    Some(opened.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))))
}

#[test]
fn large_file_is_streamed() {
    let test = "security::git::sizes::large_file_is_streamed";
    if opened_apart(test, None).is_none() {
        return;
    }
    for packed in [false, true] {
        let scene = Scene::new();
        let work = scene.repository();
        let blob = zeros(&work, 200 << 20);
        commit_tree(&work, &format!("100644 blob {blob}\tzeros.bin\n"));
        let mut addresses = addresses(&work);
        // Any other server behaves like that of a `file:` URL.
        addresses.truncate(2);
        if packed {
            git(&work, &["-c", "core.bigFileThreshold=1m", "gc", "-q"]);
            addresses.truncate(1);
        }
        for (address, location) in addresses {
            let opened = opened_apart(test, Some((&location, &scene.path(address)))).unwrap();
            let what = format!("by {address}: {opened:?}");
            assert!(
                opened.said.starts_with("200 MiB, files: zeros.bin"),
                "{what}"
            );
            assert!(opened.peak < 120, "{what}");
        }
    }
}

#[test]
fn oversized_file_is_omitted_with_note() {
    let scene = Scene::new();
    let work = scene.repository();
    let blob = zeros(&work, 600 << 20);
    let small = git(&work, &["rev-parse", "main:a.py"]);
    commit_tree(
        &work,
        &format!("100644 blob {small}\ta.py\n100644 blob {blob}\tzeros.bin\n"),
    );
    for (address, location) in addresses(&work) {
        for _ in 0..2 {
            let source = scene.open_in(address, &location).unwrap();
            assert_eq!(paths(&source), ["a.py"], "{address}");
            let note = "files larger than 256 MiB were omitted: zeros.bin";
            assert_eq!(source.notes, [note], "{address}");
            assert!(std::fs::metadata(&source.archive).unwrap().len() < 1 << 20);
        }
    }
}

#[test]
fn oversized_archive_is_rejected() {
    let scene = Scene::new();
    let work = scene.repository();
    let blob = zeros(&work, 200 << 20);
    let lines: Vec<_> = (0..6)
        .map(|i| format!("100644 blob {blob}\t{i}.bin\n"))
        .collect();
    commit_tree(&work, &lines.concat());
    for (address, location) in addresses(&work) {
        let error = scene.open_in(address, &location).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{address}");
        assert!(error.message.contains("1 GiB"), "{address}: {error}");
        assert!(error.hint.is_some());
        let entries = std::fs::read_dir(scene.path(address).join("sources")).unwrap();
        assert_eq!(entries.count(), 0, "{address}: something was written");
    }
}

/// The tree contains ten names for one tree, at every level.
#[test]
fn endless_tree_is_rejected() {
    let scene = Scene::new();
    let work = scene.repository();
    let mut below = git(&work, &["rev-parse", "main:a.py"]);
    for level in 0..9 {
        let kind = if level == 0 {
            "100644 blob"
        } else {
            "040000 tree"
        };
        let lines: Vec<_> = (0..10)
            .map(|i| format!("{kind} {below}\tname-{i}\n"))
            .collect();
        below = git_with(&work, &["mktree"], &lines.concat());
    }
    let commit = git(&work, &["commit-tree", "-m", "hostile", &below]);
    git(&work, &["update-ref", "refs/heads/main", &commit]);
    for (address, location) in addresses(&work) {
        let error = scene.open_in(address, &location).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{address}: {error}");
        assert!(error.message.contains("files"), "{address}: {error}");
    }
}

#[test]
fn invalid_tree_paths_are_rejected() {
    let scene = Scene::new();
    let work = scene.repository();
    let blob = git(&work, &["rev-parse", "main:a.py"]);
    let link = git_with(&work, &["hash-object", "-w", "--stdin"], "/etc");
    let inner = raw_tree(&work, &[("100644", "passwd", &blob)]);
    let long = "n".repeat(5000);
    let hostile: [&[(&str, &str, &str)]; 9] = [
        &[("100644", "../evil.py", &blob)],
        &[("100644", "..", &blob)],
        &[("100644", "/etc/evil.py", &blob)],
        &[("100644", "a/../../evil.py", &blob)],
        &[("40000", ".git", &inner)],
        &[("40000", ".GIT", &inner)],
        &[("100644", &long, &blob)],
        // These contain the same name twice, and a file below a link.
        &[("100644", "a.py", &blob), ("100755", "a.py", &blob)],
        &[("120000", "etc", &link), ("40000", "etc", &inner)],
    ];
    for entries in hostile {
        commit_raw(&work, entries);
        for (address, location) in addresses(&work) {
            let error = scene.open_in(address, &location).unwrap_err();
            let name: String = entries[0].1.chars().take(30).collect();
            let what = format!("{name} by {address}: {error}");
            assert_eq!(error.kind, ErrorKind::Input, "{what}");
            assert!(error.message.len() < 300, "{what}");
        }
    }
}

#[test]
fn oversized_folder_is_rejected() {
    let scene = Scene::new();
    let folder = scene.path("plain");
    write(&folder, "a.py", "");
    for i in 0..6 {
        // The files are sparse, so they take no disk space.
        let file = std::fs::File::create(folder.join(format!("{i}.bin"))).unwrap();
        file.set_len(200 << 20).unwrap();
    }
    let error = scene.open(&folder, None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(error.message.contains("1 GiB"), "{}", error.message);
    for i in 1..6 {
        std::fs::remove_file(folder.join(format!("{i}.bin"))).unwrap();
    }
    let file = std::fs::File::create(folder.join("0.bin")).unwrap();
    file.set_len(1 << 40).unwrap();
    let source = scene.open(&folder, None).unwrap();
    assert_eq!(paths(&source), ["a.py"]);
    assert_eq!(
        source.notes,
        [
            "plain is not a git repository; its files are used as they are",
            "files larger than 256 MiB were omitted: 0.bin"
        ]
    );
}

/// A huge file under the name of a configuration is not parsed.
#[test]
fn oversized_configuration_is_ignored() {
    let scene = Scene::new();
    let work = scene.repository();
    let blob = zeros(&work, 100 << 20);
    commit_tree(&work, &format!("100644 blob {blob}\tpyproject.toml\n"));
    let tree = scene.open(&work, Some("main")).unwrap().tree().unwrap();
    assert_eq!(tree.text("pyproject.toml").unwrap(), None);
}

#[test]
fn notes_stay_short() {
    let scene = Scene::new();
    let work = scene.repository();
    let commit = git(&work, &["rev-parse", "main"]);
    let blob = git(&work, &["rev-parse", "main:a.py"]);
    let lines: Vec<_> = (0..3000)
        .map(|i| format!("160000 commit {commit}\tsub-{i}\n"))
        .collect();
    commit_tree(
        &work,
        &format!("100644 blob {blob}\ta.py\n{}", lines.concat()),
    );
    let source = scene.open(&work, Some("main")).unwrap();
    let length: usize = source.notes.iter().map(String::len).sum();
    assert!(length < 300, "{length} bytes of notes");
    assert!(source.notes[0].contains("sub-0"), "{:?}", source.notes);
}
