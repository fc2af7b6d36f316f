//! Prevents programs that tools start from reaching the toolbox.
//!
//! They run as the same user, so only the kernel separates them. There are three layers, each used if the kernel
//! supports it:
//!
//! - The toolbox is not dumpable, so no other process can open its memory, streams or environment.
//! - Each program gets a Landlock domain. It cannot signal or trace processes outside it, or write to the toolbox's
//!   folder.
//! - A system call filter protects the toolbox's threads by their ids, since Landlock handles signals only from 6.12
//!   on.
//!
//! The layers do not restrict reading, or anything below the folders that tests write to.

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

/// The layers in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Whether no other process can read or write the toolbox's memory.
    pub undumpable: bool,
    /// Whether Landlock blocks signals to the toolbox.
    pub signals: bool,
    /// Whether Landlock blocks writing to the toolbox's own folder.
    pub files: bool,
    /// Whether system calls that target the toolbox are refused.
    pub filter: bool,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

struct Confinement {
    domain: Option<OwnedFd>,
    layers: Layers,
    filter: Mutex<Filter>,
}

/// A filter, and the threads that it protects.
#[derive(Default)]
struct Filter {
    threads: Vec<i32>,
    program: BpfProgram,
}

/// Prevents other processes of the same user from accessing this one's memory. Call it first.
pub fn make_undumpable() -> bool {
    nix::sys::prctl::set_dumpable(false).is_ok()
}

/// Confines every program that this process starts from now on. Only the first call has an effect.
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

/// Returns the layers in force; none if programs are not confined.
pub fn layers() -> Layers {
    CONFINEMENT
        .get()
        .map(|confinement| confinement.layers.clone())
        .unwrap_or_default()
}

/// Restrictions that a new process applies to itself before it executes another program.
pub struct ChildConfinement {
    domain: Option<i32>,
    program: BpfProgram,
}

/// Prepares the restrictions for [`ChildConfinement::enter`]; `None` if programs are not confined.
pub fn child_confinement() -> Option<ChildConfinement> {
    let confinement = CONFINEMENT.get()?;
    let threads = threads();
    let cached_filter = confinement.filter.lock();
    let mut cached_filter = cached_filter.unwrap_or_else(PoisonError::into_inner);
    if cached_filter.threads != threads {
        let program = filter::program(&threads).unwrap_or_default();
        *cached_filter = Filter { threads, program };
    }
    Some(ChildConfinement {
        domain: confinement.domain.as_ref().map(AsRawFd::as_raw_fd),
        program: cached_filter.program.clone(),
    })
}

impl ChildConfinement {
    /// Applies the restrictions. It makes only system calls, because it runs between fork and exec.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses a restriction.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: plain system calls on numbers; no memory is involved.
        unsafe {
            // Programs must not inherit the toolbox's descriptors. Kernels before 5.11 lack the flag, but the toolbox
            // opens everything with close-on-exec anyway.
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

/// Replaces this process with another program, confined like the programs of tools. Returns only on failure. The
/// program may signal itself, since this process no longer contains a toolbox.
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

/// Returns the threads of this process. A signal to any of them reaches the process.
fn threads() -> Vec<i32> {
    let mut ids: Vec<i32> = std::fs::read_dir(Path::new("/proc/self/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.push(std::process::id().cast_signed());
    ids.sort_unstable();
    ids.dedup();
    ids
}
