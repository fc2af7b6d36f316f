//! The process tree of a program, including processes that left its group and its session.
//!
//! The tree is found through `/proc`: the program's session, its descendants, and the orphans that this process
//! adopted. Without `/proc`, only the process group is ended.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// Makes orphaned descendants children of this process instead of init from now on. Intended for the toolbox,
/// which has no other children.
///
/// # Errors
///
/// Fails if the kernel refuses.
pub fn adopt_orphans() -> std::io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}

/// Children of this process that [`end`] leaves alive, with their descendants.
static SPARED: Mutex<Vec<i32>> = Mutex::new(Vec::new());

pub(super) fn protect(pid: i32) {
    spared().push(pid);
}

pub(super) fn unprotect(pid: i32) {
    spared().retain(|one| *one != pid);
}

fn spared() -> MutexGuard<'static, Vec<i32>> {
    SPARED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Process {
    parent: i32,
    session: i32,
    zombie: bool,
}

/// Kills every descendant of `root`, and `root` itself (which stays a zombie for the caller to wait for), and
/// waits for the orphans. `root` leads its own session, and is the only child of this process that does.
pub(super) fn end(root: Pid) {
    let spared = spared().clone();
    // A later round catches processes that forked while `/proc` was being read.
    for round in 0..200 {
        let all = processes();
        let doomed = descendants(&all, root.as_raw(), &spared);
        let _ = killpg(root, Signal::SIGKILL);
        for (pid, process) in &doomed {
            if !process.zombie {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            } else if *pid != root.as_raw() {
                // Fails for children of other processes; their parents are killed in the same round.
                let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
            }
        }
        if doomed.iter().all(|(pid, _)| *pid == root.as_raw()) && is_over(&doomed) {
            return;
        }
        if round > 0 {
            std::thread::sleep(Duration::from_millis(if round < 20 { 1 } else { 10 }));
        }
    }
}

/// Kills every process that this one started through [`super::run`] or adopted.
pub fn end_everything() {
    end_all_but(&[]);
}

/// Kills all of these except the background processes and their descendants.
pub fn end_leftovers() {
    let spared = spared().clone();
    end_all_but(&spared);
}

fn end_all_but(spared: &[i32]) {
    const NO_PROCESS: i32 = i32::MIN;
    // A killed process takes a moment to disappear, longer on a busy machine.
    for _ in 0..500 {
        let all = processes();
        let doomed = descendants(&all, NO_PROCESS, spared);
        for (pid, process) in &doomed {
            if !process.zombie {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
        }
        if is_over(&doomed) {
            return;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

fn is_over(doomed: &[(i32, &Process)]) -> bool {
    doomed.iter().all(|(_, process)| process.zombie)
}

/// Returns the processes that `root` started, without the `spared` ones and their descendants.
fn descendants<'a>(
    all: &'a HashMap<i32, Process>,
    root: i32,
    spared: &[i32],
) -> Vec<(i32, &'a Process)> {
    let own = std::process::id().cast_signed();
    let own_session = all.get(&own).map(|p| p.session);
    let below_root = |pid: i32| {
        let mut at = pid;
        // Bounded, because parents may briefly form a cycle: processes come and go while /proc is read.
        for _ in 0..all.len() {
            if at == root {
                return true;
            }
            if spared.contains(&at) {
                return false;
            }
            match all.get(&at) {
                // An adopted orphan. No process can join a session, so a process in this session was started elsewhere.
                Some(p) if p.parent == own => return Some(p.session) != own_session,
                Some(p) if p.parent > 0 => at = p.parent,
                _ => return false,
            }
        }
        false
    };
    all.iter()
        .filter(|(pid, _)| **pid != own)
        .filter(|(pid, p)| p.session == root || below_root(**pid))
        .map(|(pid, p)| (*pid, p))
        .collect()
}

fn processes() -> HashMap<i32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let process = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((pid, parse(&stat)?))
    };
    entries.filter_map(process).collect()
}

/// Parses `pid (name) state parent group session …`; the name may contain anything, including parentheses.
fn parse(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Process {
        parent,
        session,
        zombie: matches!(state, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    #[test]
    fn names_with_parentheses_are_parsed() {
        let p = super::parse("7 (a) Z (b) S 3 5 6 0 -1").unwrap();
        assert_eq!((p.parent, p.session, p.zombie), (3, 6, false));
    }
}
