//! Ends what a sandbox without a pid namespace leaves: every orphan of it becomes a child of the keeper.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// Kills all descendants and waits for them. Stopping them first keeps them from starting new ones.
pub fn end_all() {
    loop {
        let found = descendants(Pid::this());
        if found.is_empty() {
            return;
        }
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &found {
                let _ = kill(*pid, signal);
            }
        }
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            if status.pid().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(1));
                break;
            }
        }
    }
}

fn descendants(root: Pid) -> Vec<Pid> {
    let mut pairs = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            pairs.push((pid, parent));
        }
    }
    let mut found = vec![root.as_raw()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            pairs
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.into_iter().skip(1).map(Pid::from_raw).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from the last one.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
