//! Modes and times of files that the toolbox writes.
//!
//! In a sandbox without namespaces the sandbox's keeper makes these calls for its processes. It looks at the caller in
//! /proc, where the kernel hides an undumpable process such as the toolbox. So the toolbox shows itself for the moment that
//! a refused call is repeated. Programs inside cannot use that moment: such a sandbox refuses them all tracing, and lets
//! nobody open what /proc has of processes.

use std::fs::{File, Permissions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use nix::sys::prctl;

pub fn set_permissions_at(path: &Path, permissions: &Permissions) -> io::Result<()> {
    shown(|| std::fs::set_permissions(path, permissions.clone()))
}

pub fn set_permissions(file: &File, permissions: &Permissions) -> io::Result<()> {
    shown(|| file.set_permissions(permissions.clone()))
}

pub fn set_modified(file: &File, time: SystemTime) -> io::Result<()> {
    shown(|| file.set_modified(time))
}

fn shown(change: impl Fn() -> io::Result<()>) -> io::Result<()> {
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

/// Everyone may open this file wherever /proc is not closed altogether.
fn processes_can_be_opened() -> bool {
    File::open("/proc/self/stat").is_ok()
}
