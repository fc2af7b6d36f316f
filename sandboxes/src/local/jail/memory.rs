//! Watches the memory of a sandbox where no control group counts it: all that its processes hold together, also what
//! they share and have let go of. Beyond the limit the greediest process is killed, as the kernel would; where that does
//! not help, the sandbox is ended.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::processes::{descendants, mappings};

pub struct MemoryWatch {
    limit: u64,
    supervisor: Pid,
    /// How often in a row a process had to be killed.
    kills: u32,
}

/// Bytes of a process.
#[derive(Default, Clone, Copy)]
struct MemoryUse {
    resident: u64,
    address_space: u64,
}

impl MemoryWatch {
    pub fn new(limit: u64, supervisor: Pid) -> MemoryWatch {
        MemoryWatch {
            limit,
            supervisor,
            kills: 0,
        }
    }

    /// Says why the sandbox has to end, if it has to.
    pub fn look(&mut self) -> Option<String> {
        let mut held: Vec<(Pid, MemoryUse)> = descendants(Pid::this())
            .into_iter()
            .map(|pid| (pid, memory_use(pid)))
            .collect();
        let sum = |of: fn(&MemoryUse) -> u64| held.iter().map(|(_, held)| of(held)).sum::<u64>();
        // What is shared counts for each process here, so the true sum is no more than this.
        if sum(|held| held.resident.max(held.address_space)) <= self.limit {
            self.kills = 0;
            return None;
        }
        let private: u64 = held
            .iter()
            .map(|(pid, held)| own_share(*pid).unwrap_or(held.resident))
            .sum();
        if private.max(private_without_shared(&held) + shared(&held)) <= self.limit {
            self.kills = 0;
            return None;
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
            _ => Some(beyond(self.limit)),
        }
    }
}

/// Why a sandbox had to end.
pub fn beyond(limit: u64) -> String {
    format!(
        "its processes held more memory than the limit of {} MiB (limits.memory)",
        limit >> 20
    )
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

/// By `status`, which anybody may read; files are left out, since the kernel can drop them.
fn memory_use(pid: Pid) -> MemoryUse {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| kilobytes(&status, name).unwrap_or(0);
    MemoryUse {
        resident: field("RssAnon:") + field("RssShmem:") + field("VmSwap:"),
        address_space: field("VmSize:"),
    }
}

/// What is shared is divided among those that share it.
fn own_share(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(
        kilobytes(&text, "Pss_Anon:")?
            + kilobytes(&text, "Pss_Shmem:")?
            + kilobytes(&text, "SwapPss:").unwrap_or(0),
    )
}

fn private_without_shared(held: &[(Pid, MemoryUse)]) -> u64 {
    let of = |pid: Pid, held: &MemoryUse| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
        text.and_then(|text| kilobytes(&text, "Pss_Anon:"))
            .unwrap_or(held.resident)
    };
    held.iter().map(|(pid, held)| of(*pid, held)).sum()
}

/// Memory that is shared without a name stays while somebody has it mapped, whether its pages are resident there or not:
/// counted as large as it was mapped.
fn shared(held: &[(Pid, MemoryUse)]) -> u64 {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (pid, _) in held {
        for (inode, bytes) in unnamed(*pid) {
            let most = all.entry(inode).or_default();
            *most = bytes.max(*most);
        }
    }
    all.values().sum()
}

fn shared_of(pid: Pid) -> u64 {
    unnamed(pid).values().sum()
}

fn unnamed(pid: Pid) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for mapping in mappings(pid) {
        if mapping.name == "/dev/zero (deleted)" || mapping.name.starts_with("/memfd:") {
            *found.entry(mapping.inode).or_default() += mapping.bytes;
        }
    }
    found
}

/// Bytes of System V shared memory in this process's namespace: it stays when nobody is attached.
pub fn system_v() -> u64 {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let mut lines = table.lines();
    let names: Vec<_> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let columns = ["rss", "swap"].map(|name| names.iter().position(|found| *found == name));
    lines
        .map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let bytes = |at: &Option<usize>| fields.get((*at)?)?.parse::<u64>().ok();
            columns.iter().filter_map(bytes).sum::<u64>()
        })
        .sum()
}
