//! What the programs that tools start may not do: reach the toolbox that started them.
//!
//! They run as the same user, so that nothing but the kernel keeps them apart. There are three layers, and each
//! is used where the kernel has it: the toolbox is not dumpable (nobody opens its memory, its streams or its
//! environment); a Landlock domain for each program (no signals and no tracing out of it, no writing to the toolbox's
//! own folder); and a filter of system calls, which knows the toolbox by the numbers of its threads, for kernels whose
//! Landlock knows no signals (before 6.12). What needs none of them is left alone: reading, and everything below the
//! folders that tests write to.

mod files;
mod filter;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use seccompiler::{BpfProgram, apply_filter};
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// Which layers are in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Nobody reads or writes the toolbox's memory.
    pub undumpable: bool,
    /// By Landlock: no signals to the toolbox.
    pub signals: bool,
    /// By Landlock: no writing to the toolbox's own folder.
    pub files: bool,
    /// System calls that are aimed at the toolbox are refused.
    pub filter: bool,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

struct Confinement {
    domain: Option<OwnedFd>,
    layers: Layers,
    filter: Mutex<Option<Filter>>,
}

/// A filter, and the threads that it knows.
struct Filter {
    threads: Vec<i32>,
    program: BpfProgram,
}

/// Keeps other processes of the same user away from this one's memory. To be called first of all.
pub fn make_undumpable() -> bool {
    nix::sys::prctl::set_dumpable(false).is_ok()
}

/// From now on every program that this process starts is confined. Once is enough: what is set first stays.
pub fn confine_programs(config: &Config) {
    CONFINEMENT.get_or_init(|| {
        let (domain, signals, files) = files::domain(config);
        Confinement {
            layers: Layers {
                undumpable: matches!(nix::sys::prctl::get_dumpable(), Ok(false)),
                signals,
                files,
                filter: filter::program(&[1]).is_ok(),
            },
            domain,
            filter: Mutex::default(),
        }
    });
}

/// The layers in force; none where programs are not confined.
pub fn layers() -> Layers {
    CONFINEMENT
        .get()
        .map(|confinement| confinement.layers.clone())
        .unwrap_or_default()
}

/// What a new process does to itself before it becomes another program.
pub struct ChildConfinement {
    domain: Option<i32>,
    program: BpfProgram,
}

/// Prepares what [`ChildConfinement::enter`] does; `None` where programs are not confined.
pub fn child_confinement() -> Option<ChildConfinement> {
    let confinement = CONFINEMENT.get()?;
    let threads = threads();
    let mut kept = confinement
        .filter
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if kept.as_ref().is_none_or(|filter| filter.threads != threads) {
        *kept = filter::program(&threads)
            .ok()
            .map(|program| Filter { threads, program });
    }
    Some(ChildConfinement {
        domain: confinement.domain.as_ref().map(AsRawFd::as_raw_fd),
        program: kept
            .as_ref()
            .map(|filter| filter.program.clone())
            .unwrap_or_default(),
    })
}

impl ChildConfinement {
    /// Makes system calls only: it runs between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: plain system calls on numbers; no memory is involved.
        unsafe {
            // What the toolbox has open is not for its programs. Kernels before 5.11 do not know the call; everything
            // of ours is opened to be closed on exec in any case.
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            if let Some(domain) = self.domain
                && libc::syscall(libc::SYS_landlock_restrict_self, domain, 0) != 0
            {
                return Err(io::Error::last_os_error());
            }
        }
        if self.program.is_empty() {
            return Ok(());
        }
        apply_filter(&self.program).map_err(|_| io::Error::last_os_error())
    }
}

/// Becomes another program, confined as those are that tools start; returns only where it cannot. The program may signal
/// itself: there is no toolbox in this process any more.
pub fn become_program(config: &Config, program: &str, arguments: &[&str]) -> io::Error {
    let (domain, _, _) = files::domain(config);
    let confined = ChildConfinement {
        domain: domain.as_ref().map(AsRawFd::as_raw_fd),
        program: filter::program(&[]).unwrap_or_default(),
    };
    if let Err(error) = confined.enter() {
        return error;
    }
    std::process::Command::new(program).args(arguments).exec()
}

/// The threads of this process. A signal to any of them is one to the process.
fn threads() -> Vec<i32> {
    let mut found: Vec<i32> = std::fs::read_dir(Path::new("/proc/self/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    found.push(std::process::id().cast_signed());
    found.sort_unstable();
    found.dedup();
    found
}
