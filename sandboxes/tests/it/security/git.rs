//! Tests of hostile repositories and patches that the host reads.

mod addresses;
mod clones;
mod commands;
mod layout;
mod objects;
mod packs;
mod patches;
mod sizes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use testwright_sandboxes::repository::{OpenOptions, Placement, Source, WorkTree, open};
use testwright_sandboxes::sandbox::Result;

/// A folder for a repository, a cache, and programs that leave a mark when they run.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// Creates a work tree with one commit.
    fn repository(&self) -> PathBuf {
        let work = self.path("project");
        write(&work, "a.py", "a = 1\n");
        write(&work, "pkg/b.py", "b = 1\n");
        git(&work, &["init", "-q", "-b", "main"]);
        commit(&work, "first");
        work
    }

    fn open(&self, location: &Path, revision: Option<&str>) -> Result<Source> {
        self.open_url(location.to_str().unwrap(), revision)
    }

    fn open_url(&self, location: &str, revision: Option<&str>) -> Result<Source> {
        open(location, revision, &self.cache(), &OpenOptions::default())?.source()
    }

    /// Opens the branch `main` with a cache of this name.
    fn open_in(&self, cache: &str, location: &str) -> Result<Source> {
        open(
            location,
            Some("main"),
            &self.path(cache),
            &OpenOptions::default(),
        )?
        .source()
    }

    /// Creates a program that leaves a mark and also works as a filter.
    fn trap(&self, name: &str) -> PathBuf {
        let mark = self.path(&format!("mark-{name}"));
        let trap = self.path(&format!("trap-{name}"));
        std::fs::write(
            &trap,
            format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display()),
        )
        .unwrap();
        set_mode(&trap, 0o755);
        trap
    }

    /// Returns the names of the traps that ran.
    fn marks(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut marks: Vec<_> = names
            .filter_map(|n| n.strip_prefix("mark-").map(str::to_owned))
            .collect();
        marks.sort();
        marks
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    git_with(folder, arguments, "")
}

fn git_with(folder: &Path, arguments: &[&str], input: &str) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_COMMITTER_DATE", "2020-02-03T04:05:06Z")
        .env("GIT_AUTHOR_DATE", "2020-02-03T04:05:06Z")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {stderr}");
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

fn fifo(path: &Path) {
    let _ = std::fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
}

/// Returns the result of `work`, and panics after a minute. A thread that hangs is left behind and ends with the test.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(value) => value,
        Err(_) => panic!("{what}: timed out after a minute"),
    }
}

fn paths(source: &Source) -> Vec<String> {
    source.tree().unwrap().paths().map(str::to_owned).collect()
}
