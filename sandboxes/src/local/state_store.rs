//! The cache folder: its content, and the owners of that.
//!
//! ```text
//! programs/VERSION                               linked into sandboxes, locked (shared) by each process that uses it
//! sandboxes/ID/{workspace,store,tmp,home,root}   with sandboxes/ID.lock, locked while its host lives
//! states/NAME/{workspace,store,state.json,lock}  always complete: written elsewhere and renamed
//! states/.new-ID, states/.gone-ID                being written, being removed
//! ```
//!
//! The kernel releases a lock when the process that holds it ends, for any reason.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::python::Interpreter;
use super::removal::remove_tree;
use super::size::own_bytes;
use crate::error::SandboxError;
use crate::private;
use crate::sandbox::{Paths, Result, unique_id};

/// Prefix of the name of a state that is being removed.
const TRASH_PREFIX: &str = ".gone-";

/// Description of a state, besides its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SavedState {
    pub python: Option<Interpreter>,
    /// Paths inside the sandbox in which it was built; absolute paths in the files start with these.
    pub built: Paths,
    /// Bytes on disk, without those shared with its base state.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Cache {
    root: PathBuf,
}

/// A folder with its lock.
pub(super) struct LockedFolder {
    pub folder: PathBuf,
    pub id: String,
    _lock: File,
}

/// A state in use, which is not removed meanwhile.
pub(super) struct StateLease {
    pub folder: PathBuf,
    pub state: SavedState,
    _lock: File,
}

impl Cache {
    pub(super) fn open(root: &Path) -> Result<Cache> {
        for name in ["programs", "sandboxes", "states"] {
            let folder = root.join(name);
            // The folders contain untrusted files, some with a user's ids.
            private::create_closed(&folder)
                .map_err(with_context("create the cache folder", &folder))?;
        }
        let root = fs::canonicalize(root)?;
        Ok(Cache { root })
    }

    pub(super) fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    pub(super) fn new_sandbox(&self, purpose: &str) -> Result<LockedFolder> {
        self.own("sandboxes", &sandbox_id(purpose))
    }

    fn own(&self, kind: &str, id: &str) -> Result<LockedFolder> {
        let folder = self.root.join(kind).join(id);
        // The lock comes before the folder, so that no other process takes it for a leftover.
        let lock = File::create(with_lock(&folder))?;
        lock.lock()?;
        fs::create_dir(&folder)?;
        Ok(LockedFolder {
            folder,
            id: id.to_owned(),
            _lock: lock,
        })
    }

    fn state_folder(&self, name: &str) -> PathBuf {
        self.root.join("states").join(encoded(name))
    }

    pub(super) fn has_state(&self, name: &str) -> bool {
        self.state_folder(name).join("state.json").is_file()
    }

    pub(super) fn use_state(&self, name: &str) -> Result<StateLease> {
        let folder = self.state_folder(name);
        let missing = || {
            SandboxError::not_found(format!("the saved state {name} does not exist"))
                .hint("build the environment again")
        };
        let lock = File::open(folder.join("lock")).map_err(|_| missing())?;
        lock.lock_shared()?;
        let text = fs::read(folder.join("state.json")).map_err(|_| missing())?;
        let state = serde_json::from_slice(&text)
            .map_err(|e| SandboxError::system(format!("read the saved state {name}: {e}")))?;
        Ok(StateLease {
            folder,
            state,
            _lock: lock,
        })
    }

    /// Returns the bytes that a state takes beyond those shared with its base state.
    pub(super) fn state_bytes(&self, name: &str) -> Result<u64> {
        Ok(self.use_state(name)?.state.bytes)
    }

    /// Saves a state. `fill` writes the files into the given folder, and may share some with the folder `made_from`.
    pub(super) fn save(
        &self,
        name: &str,
        mut state: SavedState,
        made_from: Option<&Path>,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        let aside = self.own("states", &format!(".new-{}", unique_id()))?;
        let filled = fill(&aside.folder).and_then(|()| {
            fs::write(aside.folder.join("lock"), b"")?;
            state.bytes = own_bytes(&aside.folder, made_from)?;
            let text = serde_json::to_vec(&state).map_err(std::io::Error::from)?;
            fs::write(aside.folder.join("state.json"), text)?;
            self.remove_state(name)?;
            Ok(fs::rename(&aside.folder, self.state_folder(name))?)
        });
        if filled.is_err() {
            let _ = remove_tree(&aside.folder);
        }
        let _ = fs::remove_file(with_lock(&aside.folder));
        filled
    }

    pub(super) fn remove_state(&self, name: &str) -> Result<()> {
        let trash = self
            .root
            .join("states")
            .join(format!("{TRASH_PREFIX}{}", unique_id()));
        match fs::rename(self.state_folder(name), &trash) {
            Ok(()) => {
                remove_unused(&trash);
                Ok(())
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Finishes removals of states that were in use when they were removed.
    pub(super) fn finish_removals(&self) {
        let entries = fs::read_dir(self.root.join("states"));
        for entry in entries.into_iter().flatten().flatten() {
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(TRASH_PREFIX.as_bytes())
            {
                remove_unused(&entry.path());
            }
        }
    }

    /// Removes folders without an owner. Returns one line for each.
    pub(super) fn clean(&self) -> Vec<String> {
        self.finish_removals();
        let mut removed = Vec::new();
        for (kind, what) in [("sandboxes", "sandbox"), ("states", "incomplete state")] {
            let entries = fs::read_dir(self.root.join(kind));
            for entry in entries.into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".lock") {
                    // A recent lock may be about to get its folder.
                    let old = entry
                        .metadata()
                        .and_then(|metadata| metadata.modified())
                        .is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 60));
                    if old && !path.with_extension("").exists() && is_free(&path) {
                        let _ = fs::remove_file(&path);
                    }
                } else if (kind == "sandboxes" || name.starts_with(".new-"))
                    && is_free(&with_lock(&path))
                {
                    removed.push(match remove_tree(&path) {
                        Ok(()) => format!("removed {what} {name}"),
                        Err(e) => format!("could not remove {what} {name}: {e}"),
                    });
                    let _ = fs::remove_file(with_lock(&path));
                }
            }
        }
        removed
    }
}

impl LockedFolder {
    pub(super) fn remove(&self) -> Result<()> {
        remove_tree(&self.folder)?;
        let _ = fs::remove_file(with_lock(&self.folder));
        Ok(())
    }
}

/// Removes a folder if possible. One that is in use, or cannot be removed yet, stays for a later attempt.
fn remove_unused(folder: &Path) {
    if is_free(&folder.join("lock")) {
        let _ = remove_tree(folder);
    }
}

/// Returns whether no process holds the lock, or the lock does not exist.
fn is_free(lock: &Path) -> bool {
    match File::open(lock) {
        Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => true,
    }
}

fn with_lock(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Returns an id for a sandbox that starts with its purpose.
fn sandbox_id(purpose: &str) -> String {
    let purpose: String = purpose
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(24)
        .collect();
    match purpose.as_str() {
        "" => unique_id(),
        purpose => format!("{purpose}-{}", unique_id()),
    }
}

/// Encodes a name as a unique file name.
fn encoded(name: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    name.bytes()
        .map(|b| {
            if keep(b) {
                (b as char).to_string()
            } else {
                format!("%{b:02x}")
            }
        })
        .collect()
}

impl StateLease {
    /// Returns the same state with a further lock.
    pub(super) fn duplicate(&self) -> Result<StateLease> {
        let lock = File::open(self.folder.join("lock"))?;
        lock.lock_shared()?;
        Ok(StateLease {
            folder: self.folder.clone(),
            state: self.state.clone(),
            _lock: lock,
        })
    }
}

pub(super) fn with_context(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> SandboxError {
    let text = format!("{what} {}", path.display());
    move |e| {
        let mut error = SandboxError::from(e);
        error.message = format!("{text}: {}", error.message);
        error
    }
}
