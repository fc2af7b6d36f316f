//! Watches the memory of a sandbox that no control group counts.
//!
//! It counts all memory of the sandbox's processes, including shared and released memory, and what the kernel holds for
//! them. Above the limit, it kills the largest process, like the kernel. If that does not help, it ends the sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::kernel_memory::{self, SEND_BUFFER};
use super::processes::{descendants, folder, mappings};

/// Bytes that the kernel may hold for an open file (a pipe: two pages at each end).
const DESCRIPTOR: u64 = 8192;
/// Descriptors of each process that are not charged, since it shares them with its forks.
const FREE_DESCRIPTORS: u64 = 256;

pub(super) struct MemoryWatch {
    limit: u64,
    /// Whether this process is in the sandbox's namespaces, and sees what the kernel holds for it.
    sees_kernel: bool,
    supervisor: Pid,
    /// Number of consecutive checks that killed a process.
    kills: u32,
}

/// Memory of a process, in bytes.
#[derive(Default, Clone, Copy)]
struct MemoryUse {
    /// Resident memory, including page tables.
    resident: u64,
    page_tables: u64,
    address_space: u64,
    descriptors: u64,
}

impl MemoryUse {
    /// Returns a share of its memory plus its page tables, or all resident memory if the share is unknown.
    fn with_page_tables(&self, share: Option<u64>) -> u64 {
        share.map_or(self.resident, |share| share + self.page_tables)
    }

    fn open_files(&self) -> u64 {
        self.descriptors.saturating_sub(FREE_DESCRIPTORS) * DESCRIPTOR
    }
}

impl MemoryWatch {
    pub(super) fn new(limit: u64, supervisor: Pid, sees_kernel: bool) -> MemoryWatch {
        MemoryWatch {
            limit,
            sees_kernel,
            supervisor,
            kills: 0,
        }
    }

    /// Returns the reason why the sandbox must end, if it must.
    pub(super) fn check(&mut self) -> Option<String> {
        let mut held: Vec<(Pid, MemoryUse)> = descendants(Pid::this())
            .into_iter()
            .map(|pid| (pid, memory_use(pid)))
            .collect();
        let sum = |of: fn(&MemoryUse) -> u64| held.iter().map(|(_, held)| of(held)).sum::<u64>();
        let mut by_kernel = match self.sees_kernel {
            true => sum(MemoryUse::open_files) + kernel_memory::kernel_bytes(),
            false => sum(|held| held.descriptors) * SEND_BUFFER,
        };
        // Shared memory counts for each process here, so this is an upper bound of the true sum.
        if by_kernel + sum(|held| held.resident.max(held.address_space)) <= self.limit {
            self.kills = 0;
            return None;
        }
        if !self.sees_kernel {
            by_kernel = sum(MemoryUse::open_files) + sockets(&held) * SEND_BUFFER;
        }
        let private: u64 = held
            .iter()
            .map(|(pid, held)| held.with_page_tables(own_share(*pid)))
            .sum();
        let by_processes = private.max(private_without_shared(&held) + shared(&held));
        if by_kernel + by_processes <= self.limit {
            self.kills = 0;
            return None;
        }
        if by_kernel > by_processes {
            // Killing one process would not help, because others may hold the same memory.
            return Some(over_limit(self.limit));
        }
        held.retain(|(pid, _)| *pid != self.supervisor);
        let greediest = held
            .iter()
            .max_by_key(|(pid, held)| held.resident.max(shared_of(*pid)));
        self.kills += 1;
        match greediest {
            Some((pid, _)) if self.kills <= 20 => {
                let _ = kill(*pid, Signal::SIGKILL);
                None
            }
            _ => Some(over_limit(self.limit)),
        }
    }
}

/// Returns the reason for ending a sandbox that held too much memory.
pub(super) fn over_limit(limit: u64) -> String {
    format!(
        "its processes used more memory than the limit of {} MiB (limits.memory)",
        limit >> 20
    )
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

/// Reads the memory of a process from `status`, which is readable for all users. Pages of files are excluded, because
/// the kernel can drop them.
fn memory_use(pid: Pid) -> MemoryUse {
    let folder = folder(pid);
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let field = |name| kilobytes(&status, name).unwrap_or(0);
    let page_tables = field("VmPTE:");
    MemoryUse {
        resident: field("RssAnon:") + field("RssShmem:") + field("VmSwap:") + page_tables,
        page_tables,
        address_space: field("VmSize:"),
        descriptors: descriptors(&folder),
    }
}

fn descriptors(process: &Path) -> u64 {
    let folder = process.join("fd");
    match fs::metadata(&folder).map_or(0, |metadata| metadata.len()) {
        // Kernels before 6.2 report no number of descriptors.
        0 => fs::read_dir(folder).map_or(0, |entries| entries.count() as u64),
        number => number,
    }
}

/// Returns the memory of a process, with shared memory divided among its users.
fn own_share(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(folder(pid).join("smaps_rollup")).ok()?;
    Some(
        kilobytes(&text, "Pss_Anon:")?
            + kilobytes(&text, "Pss_Shmem:")?
            + kilobytes(&text, "SwapPss:").unwrap_or(0),
    )
}

/// Counts the sockets that these processes have open.
fn sockets(held: &[(Pid, MemoryUse)]) -> u64 {
    let mut names = BTreeSet::new();
    for (pid, _) in held {
        let entries = fs::read_dir(folder(*pid).join("fd")).into_iter().flatten();
        let links = entries
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok());
        names.extend(links.filter(|name| name.to_string_lossy().starts_with("socket:")));
    }
    names.len() as u64
}

fn private_without_shared(held: &[(Pid, MemoryUse)]) -> u64 {
    let of = |pid: Pid, held: &MemoryUse| {
        let text = fs::read_to_string(folder(pid).join("smaps_rollup")).ok();
        held.with_page_tables(text.and_then(|text| kilobytes(&text, "Pss_Anon:")))
    };
    held.iter().map(|(pid, held)| of(*pid, held)).sum()
}

/// Returns the bytes of shared memory without a name, at its mapped size. It remains while any process has it mapped,
/// whether or not its pages are resident there.
fn shared(held: &[(Pid, MemoryUse)]) -> u64 {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (pid, _) in held {
        for (inode, bytes) in unnamed(*pid) {
            let max_bytes = all.entry(inode).or_default();
            *max_bytes = bytes.max(*max_bytes);
        }
    }
    all.values().sum()
}

fn shared_of(pid: Pid) -> u64 {
    unnamed(pid).values().sum()
}

fn unnamed(pid: Pid) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    for mapping in mappings(pid) {
        if mapping.name == "/dev/zero (deleted)" || mapping.name.starts_with("/memfd:") {
            *sizes.entry(mapping.inode).or_default() += mapping.bytes;
        }
    }
    sizes
}
