//! The processes of a sandbox as the keeper sees them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// All that descend from a process, without it.
pub fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = vec![root];
    let mut next = 0;
    if !Path::new("/proc/thread-self/children").exists() {
        return by_parents(root);
    }
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for thread in fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| Some(Pid::from_raw(pid.parse().ok()?))),
            );
        }
    }
    found.split_off(1)
}

/// For kernels that do not list children.
fn by_parents(root: Pid) -> Vec<Pid> {
    let mut pairs = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid
            && let Some(parent) = parent(Pid::from_raw(pid))
        {
            pairs.push((pid, parent.as_raw()));
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

pub fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from the last one.
    let (_, rest) = stat.rsplit_once(')')?;
    Some(Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?))
}

/// A mapping of a process that stands for a file (or for memory that is shared like one).
pub struct Mapping {
    pub inode: u64,
    pub bytes: u64,
    pub name: String,
}

/// The folder in which the kernel shows memory and descriptors of a process: that of another thread once the first one
/// has ended, since those are gone there.
pub fn folder(pid: Pid) -> PathBuf {
    let whole = PathBuf::from(format!("/proc/{pid}"));
    if has_memory(&whole) {
        return whole;
    }
    let threads = fs::read_dir(whole.join("task")).into_iter().flatten();
    let mut threads = threads.flatten().map(|entry| entry.path());
    threads.find(|thread| has_memory(thread)).unwrap_or(whole)
}

/// Has it not ended? What has ended holds nothing any more.
pub fn has_memory(folder: &Path) -> bool {
    fs::read_to_string(folder.join("status")).is_ok_and(|text| text.contains("\nVmSize:"))
}

/// Keeps a process and all that descend from it from running, until the guard is dropped. What is stopped already stays
/// so.
pub fn freeze(root: Pid) -> Frozen {
    let mut frozen = Vec::new();
    let mut seen = BTreeSet::new();
    let mut stop = |pid: Pid| {
        if seen.insert(pid) && !is_stopped(pid) && kill(pid, Signal::SIGSTOP).is_ok() {
            frozen.push(pid);
            return true;
        }
        false
    };
    // It stops others itself when it is asked to, and would do so meanwhile.
    stop(root);
    // Until it is stopped, a process can start others.
    for _ in 0..MAX_ROUNDS {
        let new = descendants(root).into_iter().filter(|pid| stop(*pid));
        if new.count() == 0 {
            break;
        }
    }
    Frozen(frozen)
}

/// Was it stopped by a signal, or will be as soon as it runs?
fn is_stopped(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let is_stopped = field("State:").is_some_and(|state| state.trim_start().starts_with('T'));
    let pending = field("ShdPnd:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let stop = 1 << (Signal::SIGSTOP as u64 - 1);
    is_stopped || pending.is_some_and(|mask| mask & stop != 0)
}

const MAX_ROUNDS: usize = 20;

pub struct Frozen(Vec<Pid>);

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill(*pid, Signal::SIGCONT);
        }
    }
}

/// What a process has mapped besides its private memory; nothing where that may not be seen.
pub fn mappings(pid: Pid) -> Vec<Mapping> {
    let text = fs::read(folder(pid).join("maps")).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(6, ' ');
            let (start, end) = fields.next()?.split_once('-')?;
            let inode = fields.nth(3)?.parse().ok()?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            (inode != 0).then_some(Mapping {
                inode,
                bytes: number(end)?.checked_sub(number(start)?)?,
                name: fields.next().unwrap_or_default().trim_start().to_owned(),
            })
        })
        .collect()
}
