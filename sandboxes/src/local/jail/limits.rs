//! Limits that each process carries: so that a greedy one fails by itself, with an error that it can tell. What all
//! together may take is for [`super::cgroup`] and [`super::watch`].

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::super::protocol::{Isolation, Setup};

/// Kernels that count processes by user namespace need no offset; elsewhere the limit counts all
/// processes of the host's user, so those that are there already are added.
pub fn present_processes(setup: &Setup) -> u64 {
    if setup.isolation == Isolation::Namespaces && counts_by_namespace() {
        return 0;
    }
    let user = setup.owner.unwrap_or(nix::unistd::geteuid().as_raw());
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0;
    };
    let threads = |status: String| -> Option<u64> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let real: u32 = field("Uid:")?.split_whitespace().next()?.parse().ok()?;
        let threads = field("Threads:")?.trim().parse().ok()?;
        (real == user).then_some(threads)
    };
    entries
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("status")).ok())
        .filter_map(threads)
        .sum()
}

fn counts_by_namespace() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (5, 14)
}

/// What the keeper found out before it started the supervisor.
#[derive(Debug, Clone, Copy)]
pub struct Accounting {
    /// Processes that count against the limit and are there already.
    pub present: u64,
    /// The kernel counts the memory of all processes together.
    pub memory_is_counted: bool,
}

/// In a process that is about to become another program.
pub fn apply(setup: &Setup, accounting: Accounting) -> nix::Result<()> {
    let limits = &setup.limits;
    let set = |what, value: u64| {
        // The host's own limit may be lower already, and cannot be raised.
        let value = getrlimit(what).map_or(value, |(_, hard)| value.min(hard));
        setrlimit(what, value, value)
    };
    set(Resource::RLIMIT_DATA, limits.memory)?;
    set(Resource::RLIMIT_AS, limits.memory.saturating_mul(4))?;
    set(
        Resource::RLIMIT_NPROC,
        limits.processes.saturating_add(accounting.present),
    )?;
    set(Resource::RLIMIT_FSIZE, limits.file_size)?;
    // Not 0: for that a collector behind a pipe would be started all the same, outside, with what is in memory here.
    set(Resource::RLIMIT_CORE, 1)?;
    // The kernel keeps memory for open files, and for as many that are sent and not received yet.
    let files = if accounting.memory_is_counted {
        16384
    } else {
        4096
    };
    set(Resource::RLIMIT_NOFILE, files)?;
    set(Resource::RLIMIT_MSGQUEUE, 800 << 10)?;
    set(Resource::RLIMIT_MEMLOCK, 64 << 20)
}
