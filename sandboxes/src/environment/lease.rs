//! Leases on cached states and their last use: the file `NAME.used`, locked while the state is in use.
//!
//! The kernel releases a lock when its process ends, for any reason. A process that takes a lease or removes a leased
//! state holds `NAME.lock` meanwhile, so taking a lease never blocks.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::sandbox::Result;

/// A shared lease. Its state is not removed while the lease or a clone of it exists.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    _file: Arc<File>,
}

/// All leases are equal, so that they do not affect whether two environments are equal.
impl PartialEq for Lease {
    fn eq(&self, _: &Lease) -> bool {
        true
    }
}

impl Lease {
    /// Takes a lease and marks the state as used now. The caller holds `NAME.lock`.
    pub(super) fn take(folder: &Path, name: &str) -> Result<Lease> {
        let file = open(&used(folder, name))?;
        file.lock_shared()?;
        file.set_modified(SystemTime::now())?;
        Ok(Lease {
            _file: Arc::new(file),
        })
    }
}

/// An exclusive lock on a state. While it exists, no process can build the state or start to use it.
pub(super) struct ExclusiveLock {
    _build: File,
    /// Lock on `NAME.used`, or `None` if the state was never used.
    _use: Option<File>,
}

impl ExclusiveLock {
    /// Takes the lock. Returns `None` if the state is being built or is in use.
    pub(super) fn take(folder: &Path, name: &str) -> Result<Option<ExclusiveLock>> {
        let build = open(&folder.join(format!("{name}.lock")))?;
        if build.try_lock().is_err() {
            return Ok(None);
        }
        let user = match File::open(used(folder, name)) {
            Ok(file) if file.try_lock().is_err() => return Ok(None),
            Ok(file) => Some(file),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e.into()),
        };
        Ok(Some(ExclusiveLock {
            _build: build,
            _use: user,
        }))
    }
}

/// Returns the time of the last use, if it was recorded.
pub(super) fn last_used(folder: &Path, name: &str) -> Option<SystemTime> {
    let noted = std::fs::metadata(used(folder, name)).ok()?;
    noted.modified().ok()
}

fn used(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.used"))
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).open(path)
}
