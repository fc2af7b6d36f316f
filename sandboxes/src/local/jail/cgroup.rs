//! A control group for the memory of a sandbox's processes together, where this process may make one.
//!
//! Version 2 where it was delegated (by systemd to a user's service, or to root), else version 1's controller for root.
//! No other process moves. The keeper removes it in the end; groups
//! that a killed keeper left are empty, and the next keeper removes those.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::sandbox::Limits;

/// Names begin so.
const NAME: &str = "testwright-";

pub struct Cgroup {
    /// Those that could not be removed yet, in the end.
    folders: Vec<PathBuf>,
    /// The kernel counts buffers of TCP and UDP as well.
    pub counts_internet_sockets: bool,
}

impl Cgroup {
    /// `None` where there can be none, in which case others watch.
    pub fn new(limits: &Limits) -> Option<Cgroup> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("{NAME}{}", std::process::id());
        unified(&own, &name, limits).or_else(|| separate(&own, &name, limits))
    }

    pub fn add(&self, process: Pid) -> io::Result<()> {
        self.folders
            .iter()
            .try_for_each(|folder| fs::write(folder.join("cgroup.procs"), process.to_string()))
    }
}

impl Cgroup {
    /// The kernel has killed a process for want of memory.
    pub fn ran_out(&self) -> bool {
        let killed = |text: String| {
            let count = text
                .lines()
                .find_map(|line| line.strip_prefix("oom_kill "))?;
            count.trim().parse::<u64>().ok()
        };
        self.folders
            .iter()
            .flat_map(|folder| {
                ["memory.events", "memory.oom_control"].map(|file| folder.join(file))
            })
            .filter_map(|file| killed(fs::read_to_string(file).ok()?))
            .any(|count| count > 0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel takes a moment to let go of the last process.
        for _ in 0..50 {
            self.folders
                .retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
            if self.folders.is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Where a hierarchy is mounted, by the type of its file system and a controller among its options.
fn mounted(kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, found, options) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = controller.is_none_or(|name| options.split(',').any(|option| option == name));
        (found == kind && fits).then(|| PathBuf::from(place))
    })
}

fn beside(hierarchy: &Path, own: &str, name: &str) -> Option<PathBuf> {
    let own = hierarchy.join(own.trim_start_matches('/'));
    let folder = own.join(name);
    remove_left_over(&own);
    fs::create_dir(&folder).ok()?;
    Some(folder)
}

/// Groups of keepers that are gone. One that is in use is not removed: the kernel refuses.
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

/// Writes each limit; those that are `needed` must be taken.
fn set(folder: PathBuf, limits: &[(&str, String, bool)]) -> Option<PathBuf> {
    for (file, value, needed) in limits {
        if fs::write(folder.join(file), value).is_err() && *needed {
            let _ = fs::remove_dir(&folder);
            return None;
        }
    }
    Some(folder)
}

fn unified(own: &str, name: &str, limits: &Limits) -> Option<Cgroup> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let hierarchy = mounted("cgroup2", None)?;
    // A group whose children have controllers may hold no processes itself, so this is a child of the parent.
    let parent = Path::new(own).parent().unwrap_or(Path::new("/"));
    let folder = beside(&hierarchy, &parent.to_string_lossy(), name)?;
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
        folders: vec![folder],
        counts_internet_sockets: true,
    })
}

fn separate(own: &str, name: &str, limits: &Limits) -> Option<Cgroup> {
    let group = |controller: &str| {
        let own = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers
                .split(',')
                .any(|c| c == controller)
                .then_some(path)
        })?;
        beside(&mounted("cgroup", Some(controller))?, own, name)
    };
    // Processes are limited by their user in any case, and each group that a process moves to costs milliseconds.
    let memory = limits.memory.to_string();
    let memory = set(
        group("memory")?,
        &[
            ("memory.limit_in_bytes", memory.clone(), true),
            ("memory.memsw.limit_in_bytes", memory, false),
        ],
    )?;
    Some(Cgroup {
        folders: vec![memory],
        counts_internet_sockets: false,
    })
}
