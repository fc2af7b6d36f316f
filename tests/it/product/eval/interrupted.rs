//! An interrupted evaluation leaves nothing on the machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::product::eval::GradingBench;
use crate::support::program::assert_exit_code;

/// A test that reports that it has started and then never ends.
const ENDLESS: &str = "\n\ndef test_endless():\n    import pathlib, time\n    \
                       pathlib.Path('it-runs').touch()\n    time.sleep(600)\n";

/// Returns the sandboxes of a process with their locks.
fn sandboxes(process: u32) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/local/sandboxes");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let owner = format!("-{process:x}-");
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.to_string_lossy().contains(&owner))
        .collect()
}

fn holds(folder: &Path, name: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name() == name || (is_folder && holds(&entry.path(), name))
    })
}

#[test]
fn interrupted_evaluation_leaves_no_sandbox() {
    let bench = GradingBench::new(None);
    bench.dataset(&[bench.repository.instance("plain", super::ISSUE)]);
    let endless = bench.repository.append_tests_patch(ENDLESS);
    bench.predictions(&[("endless", "plain", Some(&endless))]);
    for signal in ["INT", "TERM"] {
        let child = bench.grade(&[], signal).spawn().unwrap();
        let process = child.id();
        let began = Instant::now();
        while !sandboxes(process).iter().any(|one| holds(one, "it-runs")) {
            assert!(began.elapsed() < Duration::from_secs(300), "it never ran");
            std::thread::sleep(Duration::from_millis(50));
        }
        let sent = Command::new("kill")
            .args([format!("-{signal}"), process.to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_exit_code(&child.wait_with_output().unwrap(), 130);
        assert_eq!(sandboxes(process), [] as [PathBuf; 0], "{signal}");
    }
}
