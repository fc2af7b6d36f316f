//! A control group that counts the memory of all processes of a sandbox, if this process may create one.
//!
//! Uses version 2 if it was delegated (by systemd to a user's service, or to root), otherwise version 1's memory
//! controller as root. No other process moves. The keeper removes the group in the end. Groups of killed keepers are
//! empty, and the next keeper removes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::sandbox::Limits;

/// Prefix of the names of groups.
const NAME: &str = "testwright-";

pub(super) struct Cgroup {
    /// Dropping removes it.
    folder: PathBuf,
    /// Whether the kernel also counts buffers of TCP and UDP.
    pub counts_internet_sockets: bool,
}

impl Cgroup {
    /// Creates a group. Returns `None` if that is not possible; a memory watch then replaces it.
    pub(super) fn new(limits: &Limits) -> Option<Cgroup> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("{NAME}{}", std::process::id());
        create_v2(&own, &name, limits).or_else(|| create_v1(&own, &name, limits))
    }

    pub(super) fn add(&self, process: Pid) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }

    /// Returns whether the kernel killed a process because the group ran out of memory.
    pub(super) fn ran_out(&self) -> bool {
        let killed = |text: String| {
            let count = text
                .lines()
                .find_map(|line| line.strip_prefix("oom_kill "))?;
            count.trim().parse::<u64>().ok()
        };
        ["memory.events", "memory.oom_control"]
            .iter()
            .filter_map(|file| killed(fs::read_to_string(self.folder.join(file)).ok()?))
            .any(|count| count > 0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel needs a moment to release the last process.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Finds the mount point of a hierarchy, by its file system type and a controller among its options.
fn mounted(kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, fs_type, options) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = controller.is_none_or(|name| options.split(',').any(|option| option == name));
        (fs_type == kind && fits).then(|| PathBuf::from(place))
    })
}

fn create_group(hierarchy: &Path, own: &str, name: &str) -> Option<PathBuf> {
    let own = hierarchy.join(own.trim_start_matches('/'));
    let folder = own.join(name);
    remove_left_over(&own);
    fs::create_dir(&folder).ok()?;
    Some(folder)
}

/// Removes the groups of keepers that are gone. The kernel refuses to remove one that is in use.
fn remove_left_over(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let keeper = name
            .strip_prefix(NAME)
            .and_then(|pid| pid.parse::<u32>().ok());
        if keeper.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Writes the limits of a new group. Returns `None` if a required one fails.
fn set(folder: PathBuf, limits: &[(&str, String, bool)]) -> Option<PathBuf> {
    for (file, value, needed) in limits {
        if fs::write(folder.join(file), value).is_err() && *needed {
            let _ = fs::remove_dir(&folder);
            return None;
        }
    }
    Some(folder)
}

fn create_v2(own: &str, name: &str, limits: &Limits) -> Option<Cgroup> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let hierarchy = mounted("cgroup2", None)?;
    // A group whose children have controllers may not contain processes, so the new group is a sibling.
    let parent = Path::new(own).parent().unwrap_or(Path::new("/"));
    let folder = create_group(&hierarchy, &parent.to_string_lossy(), name)?;
    let folder = set(
        folder,
        &[
            ("memory.max", limits.memory.to_string(), true),
            ("memory.swap.max", "0".to_owned(), false),
            (
                "pids.max",
                limits.processes.saturating_add(1).to_string(),
                false,
            ),
        ],
    )?;
    Some(Cgroup {
        folder,
        counts_internet_sockets: true,
    })
}

fn create_v1(own: &str, name: &str, limits: &Limits) -> Option<Cgroup> {
    let own = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers
            .split(',')
            .any(|controller| controller == "memory")
            .then_some(path)
    })?;
    let folder = create_group(&mounted("cgroup", Some("memory"))?, own, name)?;
    // The number of processes is limited by their user anyway, and each group that a process joins costs milliseconds.
    let memory = limits.memory.to_string();
    let folder = set(
        folder,
        &[
            ("memory.limit_in_bytes", memory.clone(), true),
            ("memory.memsw.limit_in_bytes", memory, false),
        ],
    )?;
    Some(Cgroup {
        folder,
        counts_internet_sockets: false,
    })
}
