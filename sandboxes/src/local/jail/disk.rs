//! Watches what a sandbox takes on disk. Asking the file system is cheap and tells how much everybody wrote; only when
//! that moved enough to matter, or after a while, the sandbox's own folders are measured.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;

use super::super::protocol::Setup;
use super::super::size::{DiskUsage, disk_usage};
use super::processes::{descendants, mappings};

/// Folders that are built in may take more.
const WHILE_BUILDING: u64 = 4;

/// As often it is measured when the file system says that nothing much happened.
const AT_LEAST: Duration = Duration::from_secs(10);

pub struct DiskWatch {
    folders: Vec<PathBuf>,
    most: DiskUsage,
    /// Of the whole file system and of the sandbox, when it was last measured.
    everybody: DiskUsage,
    own: DiskUsage,
    measured: Instant,
    cost: Duration,
}

impl DiskWatch {
    pub fn new(setup: &Setup) -> DiskWatch {
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
            .map_or(DiskUsage::default(), |folder| of_everybody(folder));
        DiskWatch {
            folders,
            most: DiskUsage {
                bytes: setup.limits.disk.saturating_mul(factor),
                files: setup.limits.files.saturating_mul(factor),
            },
            everybody,
            own: DiskUsage::default(),
            measured: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// Says why the sandbox has to end, if it has to.
    pub fn look(&mut self) -> Option<String> {
        let now = of_everybody(self.folders.first()?);
        let since = self.measured.elapsed();
        let far = |now: u64, then: u64, own: u64, most: u64| {
            now.saturating_sub(then) > most.saturating_sub(own) / 8
        };
        let moved = far(
            now.bytes,
            self.everybody.bytes,
            self.own.bytes,
            self.most.bytes,
        ) || far(
            now.files,
            self.everybody.files,
            self.own.files,
            self.most.files,
        );
        // Measuring is to take no more than a twentieth of the time, or a fiftieth without a reason.
        let due = (moved && since > self.cost * 20) || since > AT_LEAST.max(self.cost * 50);
        if !due {
            return None;
        }
        let begun = Instant::now();
        self.own = self.measure();
        (self.everybody, self.measured, self.cost) = (now, Instant::now(), begun.elapsed());
        beyond(self.own, self.most)
    }

    fn measure(&self) -> DiskUsage {
        let mut sum = deleted();
        for folder in &self.folders {
            let found = disk_usage(folder);
            sum.bytes += found.bytes;
            sum.files += found.files;
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

fn of_everybody(folder: &Path) -> DiskUsage {
    let Ok(found) = statvfs(folder) else {
        return DiskUsage::default();
    };
    let block = found.fragment_size();
    DiskUsage {
        bytes: found
            .blocks()
            .saturating_sub(found.blocks_free())
            .saturating_mul(block),
        files: found.files().saturating_sub(found.files_free()),
    }
}

/// Files without a name that a process still has open or mapped.
fn deleted() -> DiskUsage {
    let (mut sum, mut seen) = (DiskUsage::default(), BTreeSet::new());
    let mut add = |file: (u64, u64), bytes: u64| {
        if seen.insert(file) {
            sum.bytes += bytes;
            sum.files += 1;
        }
    };
    let in_memory = |name: &str| {
        ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    for pid in descendants(Pid::this()) {
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = fs::read_link(entry.path()).unwrap_or_default();
            if let Ok(found) = fs::metadata(entry.path())
                && found.is_file()
                && found.nlink() == 0
                && !in_memory(&name.to_string_lossy())
            {
                add((0, found.ino()), found.blocks() * 512);
            }
        }
        for mapping in mappings(pid) {
            if mapping.name.ends_with(" (deleted)") && !in_memory(&mapping.name) {
                add((0, mapping.inode), mapping.bytes);
            }
        }
    }
    sum
}
