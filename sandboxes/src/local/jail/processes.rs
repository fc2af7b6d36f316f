//! The processes of a sandbox, as seen by the keeper.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Returns all descendants of a process.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    // Some kernels do not list children.
    let parents = match Path::new("/proc/thread-self/children").exists() {
        true => None,
        false => Some(parents()),
    };
    let mut pids = vec![root];
    let mut next = 0;
    while let Some(process) = pids.get(next).copied() {
        next += 1;
        match &parents {
            Some(all) => {
                let children = all.iter().filter(|(_, parent)| *parent == process);
                pids.extend(children.map(|(child, _)| *child));
            }
            None => pids.extend(children(process)),
        }
    }
    pids.split_off(1)
}

fn children(process: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    let lists: Vec<_> = lists.flatten().collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(parse_pid).collect()
}

/// Returns all processes of the machine with their parents.
fn parents() -> Vec<(Pid, Pid)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| parse_pid(entry.file_name().to_str()?));
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    Some(Pid::from_raw(text.parse().ok()?))
}

pub(super) fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name in parentheses may contain anything, so fields are counted from the last parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    parse_pid(rest.split_whitespace().nth(1)?)
}

/// A mapping of a file, or of memory that is shared like a file.
pub(super) struct Mapping {
    pub inode: u64,
    pub bytes: u64,
    pub name: String,
}

/// Returns the folder in which the kernel shows memory and descriptors of a process. After its first thread has ended,
/// that is the folder of another thread.
pub(super) fn folder(pid: Pid) -> PathBuf {
    let whole = PathBuf::from(format!("/proc/{pid}"));
    if has_memory(&whole) {
        return whole;
    }
    let threads = fs::read_dir(whole.join("task")).into_iter().flatten();
    let mut threads = threads.flatten().map(|entry| entry.path());
    threads.find(|thread| has_memory(thread)).unwrap_or(whole)
}

/// Returns whether the process still has memory; one that has ended does not.
pub(super) fn has_memory(folder: &Path) -> bool {
    fs::read_to_string(folder.join("status")).is_ok_and(|text| text.contains("\nVmSize:"))
}

/// Stops a process and all its descendants until the guard is dropped. Processes that were stopped before stay stopped.
pub(super) fn freeze(root: Pid) -> FreezeGuard {
    let mut frozen = Vec::new();
    let mut seen = BTreeSet::new();
    let mut stop = |pid: Pid| {
        if seen.insert(pid) && !is_stopped(pid) && kill(pid, Signal::SIGSTOP).is_ok() {
            frozen.push(pid);
            return true;
        }
        false
    };
    // The root process stops others on request, and could do so meanwhile.
    stop(root);
    // A process can start others until it is stopped.
    for _ in 0..MAX_ROUNDS {
        let new = descendants(root).into_iter().filter(|pid| stop(*pid));
        if new.count() == 0 {
            break;
        }
    }
    FreezeGuard(frozen)
}

/// Returns whether a signal stopped the process, or will stop it as soon as it runs.
fn is_stopped(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let is_stopped = field("State:").is_some_and(|state| state.trim_start().starts_with('T'));
    let pending = field("ShdPnd:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let stop = 1 << (Signal::SIGSTOP as u64 - 1);
    is_stopped || pending.is_some_and(|mask| mask & stop != 0)
}

const MAX_ROUNDS: usize = 20;

pub(super) struct FreezeGuard(Vec<Pid>);

impl Drop for FreezeGuard {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill(*pid, Signal::SIGCONT);
        }
    }
}

/// Returns the mappings of a process besides its private memory; empty if they may not be read.
pub(super) fn mappings(pid: Pid) -> Vec<Mapping> {
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
