#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

struct Fixture {
    folder: tempfile::TempDir,
    cache: Cache,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program"), b"one").unwrap();
    Fixture {
        cache: Cache::open(&folder.path().join("cache")).unwrap(),
        folder,
    }
}

/// Returns a shell command that writes a file like the launcher.
fn launcher() -> Vec<OsString> {
    let script = r#"cat > "$2" && chmod "$3" "$2""#;
    ["/bin/sh", "-c", script, "sh"].map(OsString::from).into()
}

impl Fixture {
    fn link(&self, process: &LinkedFiles, name: &str, mode: u32) -> Option<fs::Metadata> {
        let (from, target) = (
            self.folder.path().join("program"),
            self.folder.path().join(name),
        );
        let linked = process.link(&self.cache, &launcher(), &from, mode, &target);
        linked.unwrap().then(|| fs::metadata(target).unwrap())
    }

    fn replace_program(&self, content: &[u8]) {
        let program = self.folder.path().join("program");
        fs::remove_file(&program).unwrap();
        fs::write(program, content).unwrap();
    }

    fn copies(&self) -> usize {
        fs::read_dir(self.cache.programs()).unwrap().count() - 1
    }
}

#[test]
fn changed_file_is_copied_again() {
    let (f, process) = (fixture(), LinkedFiles::default());
    let (one, two) = (
        f.link(&process, "a", 0o755).unwrap(),
        f.link(&process, "b", 0o755).unwrap(),
    );
    assert_eq!(one.ino(), two.ino());
    assert_eq!(one.permissions().mode() & 0o7777, 0o755);
    assert_eq!(f.link(&process, "b", 0o755).unwrap().ino(), one.ino());
    // A replaced program must not change the running one.
    f.replace_program(b"other");
    assert_ne!(f.link(&process, "b", 0o755).unwrap().ino(), one.ino());
    assert_eq!(fs::read(f.folder.path().join("a")).unwrap(), b"one");
    assert_eq!(fs::read(f.folder.path().join("b")).unwrap(), b"other");
}

#[test]
fn unreadable_file_is_not_shared() {
    let (f, process) = (fixture(), LinkedFiles::default());
    assert!(f.link(&process, "a", 0o700).is_none());
    assert!(!f.folder.path().join("a").exists());
}

#[test]
fn processes_share_one_copy() {
    let f = fixture();
    let (one, two) = (LinkedFiles::default(), LinkedFiles::default());
    let inode = f.link(&one, "a", 0o755).unwrap().ino();
    drop(one);
    assert_eq!(f.link(&two, "b", 0o755).unwrap().ino(), inode);
    assert_eq!(f.copies(), 1);
}

#[test]
fn unused_versions_are_removed() {
    let f = fixture();
    let (old, new) = (LinkedFiles::default(), LinkedFiles::default());
    f.link(&old, "a", 0o755).unwrap();
    f.replace_program(b"other");
    f.link(&new, "b", 0o755).unwrap();
    assert_eq!(f.copies(), 2);
    drop(old);
    f.replace_program(b"third");
    f.link(&new, "c", 0o755).unwrap();
    assert_eq!(f.copies(), 2);
    assert_eq!(fs::read(f.folder.path().join("a")).unwrap(), b"one");
}

#[test]
fn truncated_copies_are_replaced() {
    let f = fixture();
    f.link(&LinkedFiles::default(), "a", 0o755).unwrap();
    let copy = fs::read_dir(f.cache.programs()).unwrap();
    for entry in copy.flatten().filter(|entry| entry.file_name() != LOCK) {
        fs::write(entry.path(), b"").unwrap();
    }
    f.link(&LinkedFiles::default(), "b", 0o755).unwrap();
    assert_eq!(fs::read(f.folder.path().join("b")).unwrap(), b"one");
}

/// Forks continuously. Each child keeps its inherited descriptors for a while before it executes a program.
fn fork_until(stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut children = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let mut command = Command::new("/bin/true");
            // SAFETY: sleeping touches no memory of this process.
            unsafe {
                command.pre_exec(|| {
                    libc::usleep(20_000);
                    Ok(())
                });
            }
            // spawn() returns when the child executes its program, so several threads must fork at once.
            children.push(std::thread::spawn(move || command.status().unwrap()));
            std::thread::sleep(Duration::from_millis(1));
        }
        for child in children {
            child.join().unwrap();
        }
    })
}

#[test]
fn copies_run_while_threads_fork() {
    let (f, process) = (fixture(), LinkedFiles::default());
    let stop = Arc::new(AtomicBool::new(false));
    let forking = fork_until(stop.clone());
    let mut busy = 0;
    for _ in 0..20 {
        let program = f.folder.path().join("program");
        fs::remove_file(&program).unwrap();
        fs::copy("/bin/true", program).unwrap();
        f.link(&process, "linked", 0o755).unwrap();
        let ran = Command::new(f.folder.path().join("linked")).status();
        busy += usize::from(ran.is_err_and(|e| e.raw_os_error() == Some(libc::ETXTBSY)));
    }
    stop.store(true, Ordering::Relaxed);
    forking.join().unwrap();
    assert_eq!(busy, 0);
}
