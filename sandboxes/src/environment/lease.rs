//! Who uses what is kept, and when it was used last: the file `NAME.used`, locked for as long as somebody uses it.
//!
//! A lock of the kernel ends with the process that holds it, however that ends. Whoever takes a lease, or removes what
//! is leased, holds `NAME.lock` at that moment, so nobody ever waits for a lease.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::sandbox::Result;

/// What it is for is not removed while it, or a clone of it, lives.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    _file: Arc<File>,
}

/// Says nothing about what an environment is.
impl PartialEq for Lease {
    fn eq(&self, _: &Lease) -> bool {
        true
    }
}

impl Lease {
    /// Used now. The caller holds `NAME.lock`.
    pub fn take(folder: &Path, name: &str) -> Result<Lease> {
        let file = open(&used(folder, name))?;
        file.lock_shared()?;
        file.set_modified(SystemTime::now())?;
        Ok(Lease {
            _file: Arc::new(file),
        })
    }
}

/// While it lives, nobody builds it and nobody begins to use it.
pub(super) struct ExclusiveLock {
    _build: File,
    /// `None` where nobody ever used it.
    _use: Option<File>,
}

impl ExclusiveLock {
    /// `None` where somebody builds it or uses it.
    pub fn take(folder: &Path, name: &str) -> Result<Option<ExclusiveLock>> {
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

/// When it was used last, as far as that was noted.
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
