//! Resource limits of each process, so that a greedy process fails by itself, with an error that it can report.
//! [`super::cgroup`] and [`super::watch`] limit all processes together.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::super::protocol::{Isolation, Setup};

/// Returns how many existing processes count against the limit. Some kernels count by user namespace, so that none
/// counts. Others count all processes of the host user.
pub(super) fn present_processes(setup: &Setup) -> u64 {
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

/// Facts that the keeper gathered before it started the supervisor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accounting {
    /// Existing processes that count against the limit.
    pub present: u64,
    /// Whether the kernel counts the memory of all processes together.
    pub memory_is_counted: bool,
}

/// Sets the limits, in a process that will execute another program.
pub(super) fn apply(setup: &Setup, accounting: Accounting) -> nix::Result<()> {
    let limits = &setup.limits;
    let set = |what, value: u64| {
        // The host's own limit may be lower, and cannot be raised.
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
    // With 0, the kernel would still start a collector behind a pipe, outside, with the memory of this process.
    set(Resource::RLIMIT_CORE, 1)?;
    // The kernel holds memory for open files, and for as many sent but not yet received.
    let files = if accounting.memory_is_counted {
        16384
    } else {
        4096
    };
    set(Resource::RLIMIT_NOFILE, files)?;
    set(Resource::RLIMIT_MSGQUEUE, 800 << 10)?;
    set(Resource::RLIMIT_MEMLOCK, 64 << 20)
}
