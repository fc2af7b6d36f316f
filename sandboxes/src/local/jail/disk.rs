//! Watches the disk usage of a sandbox. Querying the file system is cheap, but shows the usage of all its users. So the
//! sandbox's own folders are measured only after a significant change, or after a while.
//!
//! Some files cannot be measured: those in a closed folder that this process may not open, and those in flight between
//! processes. Their size is bounded by the growth of the whole file system since the last complete measurement.

use std::collections::BTreeSet;
use std::fs;
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::unistd::Pid;

use super::super::protocol::Setup;
use super::super::size::{DiskUsage, FileSystem, disk_usage};
use super::processes::{self, descendants, mappings};

/// Maximum time between two measurements if the file system shows no significant change.
const MAX_INTERVAL: Duration = Duration::from_secs(10);

/// Free bytes that a sandbox with large files must leave to others. A sandbox that takes less than this is not
/// responsible for a full disk.
const MIN_FREE_BYTES: u64 = 512 << 20;

/// Bytes that a fast machine can write per second.
const MAX_WRITE_RATE: u64 = 4 << 30;
pub(super) const MAX_PAUSE: Duration = Duration::from_millis(200);
const MIN_PAUSE: Duration = Duration::from_millis(10);

pub(super) struct DiskWatch {
    folders: Vec<PathBuf>,
    max: DiskUsage,
    supervisor: Pid,
    /// Whether the supervisor's first process is the toolbox, as while tools run.
    has_toolbox: bool,
    /// Usage of the whole file system at the last measurement.
    everybody: DiskUsage,
    /// Usage of the sandbox at the last measurement.
    own: DiskUsage,
    /// Usage of the sandbox and of the whole file system at the last measurement without hidden files.
    complete: (DiskUsage, DiskUsage),
    measured: Instant,
    cost: Duration,
    /// Bytes that the sandbox and others can write before the next measurement is needed.
    room: u64,
}

impl DiskWatch {
    pub(super) fn new(setup: &Setup, supervisor: Pid) -> DiskWatch {
        // Only folders that belong to the sandbox count; mounted folders belong to others.
        let home = setup.root.parent().unwrap_or(&setup.root);
        let writable = setup.binds.iter().filter(|bind| bind.writable);
        let upper = setup.overlay.iter().map(|overlay| overlay.upper.clone());
        let folders: Vec<_> = writable
            .map(|bind| bind.host.clone())
            .filter(|host| host.starts_with(home))
            .chain(upper)
            .collect();
        let everybody = folders
            .first()
            .and_then(|folder| FileSystem::from_folder(folder))
            .map_or(DiskUsage::default(), |file_system| file_system.used);
        DiskWatch {
            folders,
            max: DiskUsage::allowed(&setup.limits, setup.building),
            supervisor,
            has_toolbox: !setup.building,
            everybody,
            own: DiskUsage::default(),
            complete: (DiskUsage::default(), everybody),
            measured: Instant::now(),
            cost: Duration::ZERO,
            room: 0,
        }
    }

    /// Returns how long the sandbox cannot reach a limit, even on a fast machine.
    pub(super) fn pause(&self) -> Duration {
        let seconds = self.room as f64 / MAX_WRITE_RATE as f64;
        Duration::from_secs_f64(seconds).clamp(MIN_PAUSE, MAX_PAUSE)
    }

    /// Returns the reason why the sandbox must end, if it must.
    pub(super) fn check(&mut self) -> Option<String> {
        let Some(now) = FileSystem::from_folder(self.folders.first()?) else {
            self.room = u64::MAX;
            return None;
        };
        let moved = now.used.beyond(self.everybody);
        let remaining = DiskUsage {
            bytes: self.max.bytes.saturating_sub(self.own.bytes).min(now.free),
            ..self.max.beyond(self.own)
        };
        self.room = remaining.bytes.saturating_sub(moved.bytes) / 4;
        let is_full = now.free < MIN_FREE_BYTES && moved.bytes > 0;
        let may_be_beyond = moved.bytes > remaining.bytes || moved.files > remaining.files;
        let much = moved.bytes > remaining.bytes / 8
            || moved.files > remaining.files / 8
            || !now.counts_files;
        let since = self.measured.elapsed();
        // Measuring may take at most a twentieth of the time, or a fiftieth without a reason.
        let is_due = (may_be_beyond && since > self.cost)
            || ((much || is_full) && since > self.cost * 20)
            || since > MAX_INTERVAL.max(self.cost * 50);
        if !is_due {
            return None;
        }
        let begun = Instant::now();
        self.own = self.measure(now.used);
        if !self.own.is_hidden {
            self.complete = (self.own, now.used);
        }
        (self.everybody, self.measured, self.cost) = (now.used, Instant::now(), begun.elapsed());
        self.own
            .excess(self.max)
            .or_else(|| full(self.own, now.free))
    }

    /// Measures the sandbox. `everybody` is the usage of the whole file system.
    fn measure(&self, everybody: DiskUsage) -> DiskUsage {
        let own = self.count();
        let bound = bound(self.complete, everybody);
        if !own.is_hidden || bound.excess(self.max).is_none() {
            return own;
        }
        // A folder that is renamed constantly cannot be followed while the sandbox runs.
        let frozen = processes::freeze(self.supervisor);
        let own = self.count();
        drop(frozen);
        match own.is_hidden {
            true => DiskUsage {
                bytes: own.bytes.max(bound.bytes),
                files: own.files.max(bound.files),
                is_hidden: true,
            },
            false => own,
        }
    }

    fn count(&self) -> DiskUsage {
        let mut sum = deleted(self.supervisor, self.has_toolbox);
        for folder in &self.folders {
            let usage = disk_usage(folder);
            sum.bytes += usage.bytes;
            sum.files += usage.files;
            sum.is_hidden |= usage.is_hidden;
        }
        sum
    }
}

/// Returns the maximum usage of a sandbox, from that of the sandbox and of the whole file system at the last complete
/// measurement.
fn bound((own, everybody_then): (DiskUsage, DiskUsage), everybody: DiskUsage) -> DiskUsage {
    let grown = everybody.beyond(everybody_then);
    DiskUsage {
        bytes: own.bytes + grown.bytes,
        files: own.files + grown.files,
        is_hidden: true,
    }
}

/// Returns why a sandbox with large files must end on a nearly full disk.
fn full(own: DiskUsage, free: u64) -> Option<String> {
    (free < MIN_FREE_BYTES && own.bytes > MIN_FREE_BYTES).then(|| {
        format!(
            "the disk is nearly full ({} MiB left), and its files take {} MiB",
            free >> 20,
            own.bytes >> 20
        )
    })
}

/// Counts deleted files that a process still has open or mapped. The size of a file that is only mapped is unknown, so
/// more than the mapped part may be hidden.
///
/// The supervisor and the toolbox, if there is one, hide their descriptors.
fn deleted(supervisor: Pid, mut has_toolbox: bool) -> DiskUsage {
    let (mut sum, mut seen) = (DiskUsage::default(), BTreeSet::new());
    let processes = descendants(Pid::this());
    for pid in &processes {
        let process = processes::folder(*pid);
        let Ok(entries) = fs::read_dir(process.join("fd")) else {
            let is_ours = *pid == supervisor
                || (processes::parent(*pid) == Some(supervisor) && mem::take(&mut has_toolbox));
            sum.is_hidden |= !is_ours && processes::has_memory(&process);
            continue;
        };
        for entry in entries.flatten() {
            let (path, info) = (entry.path(), process.join("fdinfo").join(entry.file_name()));
            let name = fs::read_link(&path).unwrap_or_default();
            if name.to_string_lossy().starts_with("socket:") {
                sum.is_hidden |= has_descriptors(&info);
            } else if let Ok(metadata) = fs::metadata(&path)
                && metadata.is_file()
                && metadata.nlink() == 0
                && statfs(&path).is_ok_and(|of| of.filesystem_type() != TMPFS_MAGIC)
                && seen.insert(metadata.ino())
            {
                sum.bytes += metadata.blocks() * 512;
                sum.files += 1;
            }
        }
    }
    for mapping in processes.into_iter().flat_map(mappings) {
        // Only the inode is compared, because some kernels report another device for a file of an overlay.
        if mapping.name.ends_with(" (deleted)")
            && !in_memory(&mapping.name)
            && seen.insert(mapping.inode)
        {
            sum.bytes += mapping.bytes;
            sum.files += 1;
            sum.is_hidden = true;
        }
    }
    sum
}

fn in_memory(name: &str) -> bool {
    ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Returns whether descriptors were sent to this socket and not received yet. No process shows the files behind them.
fn has_descriptors(info: &Path) -> bool {
    let text = fs::read_to_string(info).unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    number.is_some_and(|number| number.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_before_last_complete_measurement_is_of_others() {
        let usage = |bytes: u64, files: u64| DiskUsage {
            bytes,
            files,
            is_hidden: false,
        };
        let hidden = |bytes: u64, files: u64| DiskUsage {
            is_hidden: true,
            ..usage(bytes, files)
        };
        let complete = (usage(40, 2), usage(9_000, 70));
        assert_eq!(bound(complete, usage(9_005, 73)), hidden(45, 5));
        assert_eq!(bound(complete, usage(8_000, 60)), hidden(40, 2));
    }
}
