//! Sets modes and times of files that the toolbox writes.
//!
//! In a sandbox without namespaces, a supervisor process makes these calls for the sandboxed processes. It inspects the
//! caller in /proc, where the kernel hides an undumpable process such as the toolbox. So the toolbox makes itself
//! dumpable while it repeats a refused call. Programs in the sandbox cannot exploit that moment: such a sandbox denies
//! them all tracing, and denies access to process entries in /proc.

use std::fs::{File, Permissions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use nix::sys::prctl;

pub(crate) fn set_permissions_at(path: &Path, permissions: &Permissions) -> io::Result<()> {
    while_dumpable(|| std::fs::set_permissions(path, permissions.clone()))
}

pub(crate) fn set_permissions(file: &File, permissions: &Permissions) -> io::Result<()> {
    while_dumpable(|| file.set_permissions(permissions.clone()))
}

pub(crate) fn set_modified(file: &File, time: SystemTime) -> io::Result<()> {
    while_dumpable(|| file.set_modified(time))
}

fn while_dumpable(change: impl Fn() -> io::Result<()>) -> io::Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    match change() {
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && matches!(prctl::get_dumpable(), Ok(false))
                && !processes_can_be_opened() =>
        {
            let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            prctl::set_dumpable(true)?;
            let changed = change();
            prctl::set_dumpable(false)?;
            changed
        }
        done => done,
    }
}

/// Returns whether /proc is readable: every process may open this file unless /proc is closed altogether.
fn processes_can_be_opened() -> bool {
    File::open("/proc/self/stat").is_ok()
}
