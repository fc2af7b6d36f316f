//! The embedded backend: processes on this machine, each sandbox in its own jail.
//!
//! Namespaces isolate fully. Landlock alone is reduced isolation, used if it is chosen, or in a container that allows
//! no namespaces. The backend finds out by trying what the machine allows (see [`Isolation`]).
//!
//! No sandboxed code runs in the host's process: a launcher (this program again, with [`jail_main`] as its entry point)
//! creates the jail. The backend does not support system packages, images or CPU shares.

mod client;
mod container;
mod copy;
mod file_equality;
mod jail;
mod layout;
mod linked_files;
mod openat2;
mod probe;
mod program_writer;
#[cfg(not(fuzzing))]
mod protocol;
#[cfg(fuzzing)]
pub mod protocol;
mod python;
mod removal;
mod sandbox;
mod sandbox_dirs;
mod size;
mod state_archive;
mod state_store;
mod store;
mod tree_archive;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub use container::in_container;
pub use jail::jail_main;
pub use protocol::Isolation;
pub(crate) use python::candidates as python_candidates;
pub use python::{Interpreter, find as find_python};
pub use size::disk_bytes;
pub(crate) use size::{DiskUsage, FileSystem, disk_usage};

use crate::sandbox::{Backend, Result, Sandbox, Spec};
use linked_files::LinkedFiles;
use state_store::Cache;

/// Host user that tools run as in namespaces if this process is root. No account has this number.
const SANDBOX_UID: u32 = 777_001_000;

/// First of the host users for sandboxes in place if this process is root. Each sandbox gets its own user, since it can
/// see files of other sandboxes.
const FIRST_IN_PLACE_UID: u32 = 777_010_000;

const REDUCED_ISOLATION_WARNING: &str = "reduced isolation: Landlock and seccomp without namespaces; the repository's code can see which \
     paths and processes exist on this machine";

/// Settings of the embedded backend.
#[derive(Debug, Clone, Default)]
pub struct LocalSettings {
    /// Folder for sandboxes and saved states.
    pub cache: PathBuf,
    /// Program and arguments that call [`jail_main`].
    pub launcher: Vec<OsString>,
    /// Run without isolation if none is available.
    pub no_isolation: bool,
    /// Use this isolation and no other.
    pub force: Option<Isolation>,
    /// Whether this process runs in a container (see [`in_container`]): reduced isolation may then replace namespaces.
    pub in_container: bool,
}

/// The embedded backend, which starts sandboxes as processes on this machine.
pub struct Local {
    inner: Arc<LocalContext>,
}

/// Isolation of sandboxes on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalSecurity {
    /// Kind of isolation that new sandboxes get.
    pub isolation: Isolation,
    /// Whether sandboxed processes run as a separate user.
    pub own_user: bool,
    /// Whether the kernel counts the memory of all processes together; otherwise a watch does.
    pub memory_is_counted: bool,
}

/// State that all sandboxes of one backend share.
pub struct LocalContext {
    cache: Cache,
    launcher: Vec<OsString>,
    isolation: Isolation,
    overlay: bool,
    memory_is_counted: bool,
    root: bool,
    linked_files: LinkedFiles,
}

impl Drop for LocalContext {
    fn drop(&mut self) {
        self.cache.finish_removals();
    }
}

impl LocalContext {
    /// Returns the host user that owns what a sandbox writes; `None` unless this process is root.
    fn owner(&self, sandbox: &str) -> Option<u32> {
        match self.isolation {
            Isolation::Namespaces => self.root.then_some(SANDBOX_UID),
            Isolation::Landlock => self.root.then(|| {
                let hash = sandbox.bytes().fold(5381u32, |hash, byte| {
                    hash.wrapping_mul(33) ^ u32::from(byte)
                });
                FIRST_IN_PLACE_UID + hash % 900_000
            }),
            Isolation::None => None,
        }
    }

    /// Returns whether sandboxes share files with saved states. In place they do so only if their processes are other
    /// users. Otherwise a single protection would separate them from the shared file, and a second one is worth a copy.
    fn shares_files(&self) -> bool {
        match self.isolation {
            Isolation::Namespaces => true,
            Isolation::Landlock => self.root,
            Isolation::None => false,
        }
    }

    /// Returns the user that owns the workspace of a saved state. It is an overlay's lower layer in namespaces, and
    /// copied otherwise.
    fn owner_of_states(&self) -> Option<u32> {
        (self.root && self.isolation == Isolation::Namespaces).then_some(SANDBOX_UID)
    }
}

impl Local {
    /// Determines the available isolation by starting a launcher for each candidate.
    ///
    /// # Errors
    ///
    /// Kind `Unavailable`, with a hint, if no allowed isolation is available. Also fails if the cache folder cannot be
    /// used.
    pub fn new(settings: LocalSettings) -> Result<Local> {
        let cache = Cache::open(&settings.cache)?;
        let probe = probe::choose(&settings, &cache)?;
        let root = nix::unistd::geteuid().is_root();
        Ok(Local {
            inner: Arc::new(LocalContext {
                cache,
                launcher: settings.launcher,
                isolation: probe.isolation,
                overlay: probe.overlay,
                memory_is_counted: probe.memory_is_counted,
                root,
                linked_files: LinkedFiles::default(),
            }),
        })
    }

    /// Returns the kind of isolation that new sandboxes get.
    pub fn isolation(&self) -> Isolation {
        self.inner.isolation
    }

    /// Returns the isolation, and how users and memory are separated.
    pub fn security(&self) -> LocalSecurity {
        LocalSecurity {
            isolation: self.inner.isolation,
            own_user: self.inner.owner("").is_some(),
            memory_is_counted: self.inner.memory_is_counted,
        }
    }
}

#[async_trait]
impl Backend for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn has_own_loopback(&self) -> bool {
        self.inner.isolation == Isolation::Namespaces
    }

    fn isolation_warning(&self) -> Option<&'static str> {
        match self.inner.isolation {
            Isolation::Namespaces => None,
            Isolation::Landlock => Some(REDUCED_ISOLATION_WARNING),
            Isolation::None => {
                Some("no isolation: the repository's code can do everything that you can")
            }
        }
    }

    fn layout(&self) -> String {
        format!(
            "local-2-{:?}-{}",
            self.inner.isolation,
            std::env::consts::ARCH
        )
        .to_lowercase()
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        Ok(Box::new(sandbox::start(self.inner.clone(), spec).await?))
    }

    async fn has_saved(&self, name: &str) -> Result<bool> {
        Ok(self.inner.cache.has_state(name))
    }

    async fn saved_bytes(&self, name: &str) -> Result<u64> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || inner.cache.state_bytes(&name)).await?
    }

    async fn remove_saved(&self, name: &str) -> Result<()> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || inner.cache.remove_state(&name)).await?
    }

    async fn export_saved(&self, name: &str, to: &Path) -> Result<()> {
        let (inner, name, to) = (self.inner.clone(), name.to_owned(), to.to_owned());
        tokio::task::spawn_blocking(move || state_archive::export(&inner.cache, &name, &to)).await?
    }

    async fn import_saved(&self, name: &str, from: &Path) -> Result<()> {
        let (inner, name, from) = (self.inner.clone(), name.to_owned(), from.to_owned());
        tokio::task::spawn_blocking(move || state_archive::import(&inner, &name, &from)).await?
    }

    /// Describes the system and the interpreter: both are this machine's own, and virtual environments name the
    /// interpreter's path.
    async fn machine(&self, python: Option<&str>) -> Result<String> {
        let python = python.map(str::to_owned);
        tokio::task::spawn_blocking(move || {
            let python = match python {
                Some(version) => python::describe(&python::find(&version)?)?,
                None => String::new(),
            };
            Ok(format!("{}\n{python}", python::system()))
        })
        .await?
    }

    async fn check_python(&self, version: &str) -> Result<()> {
        let version = version.to_owned();
        let check = move || match python::is_release_installed(&version) {
            true => Ok(()),
            false => python::find(&version).map(drop),
        };
        tokio::task::spawn_blocking(check).await?
    }

    async fn image_digest(&self, name: &str) -> Result<String> {
        Err(sandbox_dirs::no_images(name))
    }

    async fn clean(&self) -> Result<Vec<String>> {
        let inner = self.inner.clone();
        Ok(tokio::task::spawn_blocking(move || inner.cache.clean()).await?)
    }
}
