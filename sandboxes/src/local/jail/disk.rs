//! Watches what a sandbox takes on disk. Asking the file system is cheap and tells how much everybody wrote; only when
//! that moved enough to matter, or after a while, the sandbox's own folders are measured.
//!
//! What cannot be looked at (a closed folder, where this process has no right to open it; files that are only in flight
//! between processes) is bounded by what the whole file system gained since the sandbox began.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;

use super::super::protocol::Setup;
use super::super::size::{DiskUsage, disk_usage};
use super::processes::{self, descendants, mappings};

/// Folders that are built in may take more.
const WHILE_BUILDING: u64 = 4;

/// How often it is measured if the file system says that nothing much happened.
const MAX_INTERVAL: Duration = Duration::from_secs(10);

/// Room on the disk that a sandbox with large files leaves to others. A sandbox that takes less than this is not to
/// blame for a full disk.
const RESERVE: u64 = 512 << 20;

/// Bytes that can be written in a second, on a machine that is fast.
const FASTEST: u64 = 4 << 30;
pub const MAX_PAUSE: Duration = Duration::from_millis(200);
const MIN_PAUSE: Duration = Duration::from_millis(10);

pub struct DiskWatch {
    folders: Vec<PathBuf>,
    max: DiskUsage,
    supervisor: Pid,
    /// Usage of the whole file system when the sandbox began, and when it was last measured.
    at_start: DiskUsage,
    everybody: DiskUsage,
    /// Usage of the sandbox when it was last measured.
    own: DiskUsage,
    measured: Instant,
    cost: Duration,
    /// Bytes that others and the sandbox could write before it has to be measured.
    room: u64,
}

impl DiskWatch {
    pub fn new(setup: &Setup, supervisor: Pid) -> DiskWatch {
        // Only what goes with the sandbox: mounted folders are others' business.
        let home = setup.root.parent().unwrap_or(&setup.root);
        let writable = setup.binds.iter().filter(|bind| bind.writable);
        let upper = setup.overlay.iter().map(|overlay| overlay.upper.clone());
        let folders: Vec<_> = writable
            .map(|bind| bind.host.clone())
            .filter(|host| host.starts_with(home))
            .chain(upper)
            .collect();
        let factor = if setup.building { WHILE_BUILDING } else { 1 };
        let everybody = folders
            .first()
            .and_then(|folder| FileSystem::of(folder))
            .map_or(DiskUsage::default(), |found| found.used);
        DiskWatch {
            folders,
            max: DiskUsage {
                bytes: setup.limits.disk.saturating_mul(factor),
                files: setup.limits.files.saturating_mul(factor),
                ..DiskUsage::default()
            },
            supervisor,
            at_start: everybody,
            everybody,
            own: DiskUsage::default(),
            measured: Instant::now(),
            cost: Duration::ZERO,
            room: 0,
        }
    }

    /// How long nothing can happen that would have to be noticed at once.
    pub fn pause(&self) -> Duration {
        let seconds = self.room as f64 / FASTEST as f64;
        Duration::from_secs_f64(seconds).clamp(MIN_PAUSE, MAX_PAUSE)
    }

    /// Says why the sandbox has to end, if it has to.
    pub fn look(&mut self) -> Option<String> {
        let Some(now) = FileSystem::of(self.folders.first()?) else {
            self.room = u64::MAX;
            return None;
        };
        let moved = now.used.beyond(self.everybody);
        let left = DiskUsage {
            bytes: self.max.bytes.saturating_sub(self.own.bytes).min(now.free),
            ..self.max.beyond(self.own)
        };
        self.room = left.bytes.saturating_sub(moved.bytes) / 4;
        let is_full = now.free < RESERVE && moved.bytes > 0;
        let may_be_beyond = moved.bytes > left.bytes || moved.files > left.files;
        let much = moved.bytes > left.bytes / 8 || moved.files > left.files / 8;
        let since = self.measured.elapsed();
        // Measuring should take at most a twentieth of the time, or a fiftieth without a reason.
        let is_due = (may_be_beyond && since > self.cost)
            || ((much || is_full) && since > self.cost * 20)
            || since > MAX_INTERVAL.max(self.cost * 50);
        if !is_due {
            return None;
        }
        let begun = Instant::now();
        self.own = self.measure(now.used.beyond(self.at_start));
        (self.everybody, self.measured, self.cost) = (now.used, Instant::now(), begun.elapsed());
        beyond(self.own, self.max).or_else(|| full(self.own, now.free))
    }

    fn measure(&self, gained: DiskUsage) -> DiskUsage {
        let own = self.count();
        if !own.is_hidden || beyond(gained, self.max).is_none() {
            return own;
        }
        // A folder that is renamed all the time cannot be followed while the sandbox runs.
        let frozen = processes::freeze(self.supervisor);
        let own = self.count();
        drop(frozen);
        match own.is_hidden {
            true => DiskUsage {
                bytes: own.bytes.max(gained.bytes),
                files: own.files.max(gained.files),
                is_hidden: true,
            },
            false => own,
        }
    }

    fn count(&self) -> DiskUsage {
        let mut sum = deleted();
        for folder in &self.folders {
            let found = disk_usage(folder);
            sum.bytes += found.bytes;
            sum.files += found.files;
            sum.is_hidden |= found.is_hidden;
        }
        sum
    }
}

/// Why a sandbox that took this much has to end.
fn beyond(own: DiskUsage, most: DiskUsage) -> Option<String> {
    if own.bytes > most.bytes {
        return Some(format!(
            "its files took {} MiB on disk, beyond the limit of {} MiB (limits.disk)",
            own.bytes >> 20,
            most.bytes >> 20
        ));
    }
    (own.files > most.files).then(|| {
        format!(
            "it made {} files and folders, beyond the limit of {} files (limits.files)",
            own.files, most.files
        )
    })
}

/// Why a sandbox with large files has to end on a disk that is nearly full.
fn full(own: DiskUsage, free: u64) -> Option<String> {
    (free < RESERVE && own.bytes > RESERVE).then(|| {
        format!(
            "the disk is nearly full ({} MiB are left), and its files took {} MiB",
            free >> 20,
            own.bytes >> 20
        )
    })
}

struct FileSystem {
    used: DiskUsage,
    /// Bytes that this user may still write.
    free: u64,
}

impl FileSystem {
    fn of(folder: &Path) -> Option<FileSystem> {
        let found = statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.fragment_size());
        Some(FileSystem {
            used: DiskUsage {
                bytes: bytes(found.blocks().saturating_sub(found.blocks_free())),
                files: found.files().saturating_sub(found.files_free()),
                is_hidden: false,
            },
            free: bytes(found.blocks_available()),
        })
    }
}

/// Files without a name that a process still has open or mapped.
fn deleted() -> DiskUsage {
    let (mut sum, mut seen) = (DiskUsage::default(), BTreeSet::new());
    for pid in descendants(Pid::this()) {
        let process = processes::folder(pid);
        let mut add = |inode: u64, bytes: u64| {
            if seen.insert(inode) {
                sum.bytes += bytes;
                sum.files += 1;
            }
        };
        let mut is_hidden = false;
        let entries = fs::read_dir(process.join("fd")).into_iter().flatten();
        for entry in entries.flatten() {
            let name = fs::read_link(entry.path()).unwrap_or_default();
            let name = name.to_string_lossy();
            if name.starts_with("socket:") {
                is_hidden |= has_descriptors(&process.join("fdinfo").join(entry.file_name()));
            } else if let Ok(found) = fs::metadata(entry.path())
                && found.is_file()
                && found.nlink() == 0
                && !in_memory(&name)
            {
                add(found.ino(), found.blocks() * 512);
            }
        }
        for mapping in mappings(pid) {
            if mapping.name.ends_with(" (deleted)") && !in_memory(&mapping.name) {
                add(mapping.inode, mapping.bytes);
            }
        }
        sum.is_hidden |= is_hidden;
    }
    sum
}

fn in_memory(name: &str) -> bool {
    ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Descriptors were sent to this socket and not received yet: what they stand for no process shows.
fn has_descriptors(info: &Path) -> bool {
    let text = fs::read_to_string(info).unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    number.is_some_and(|number| number.trim() != "0")
}
