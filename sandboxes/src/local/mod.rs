//! The embedded backend: processes of this machine in a jail of their own.
//!
//! Namespaces isolate. Landlock alone is reduced isolation: it is used if it is chosen, or in a container that allows
//! no namespaces. What the machine allows is found out by trying (see [`Isolation`]). Nothing runs in the host's process: a launcher (this program again, with [`jail_main`] as its entry) makes the jail.
//! What it does not do: system packages, images, CPU shares.

mod beneath;
mod client;
mod container;
mod copy;
mod file_equality;
mod jail;
mod layout;
mod linked_files;
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

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

pub use container::in_container;
pub use jail::jail_main;
pub use protocol::Isolation;
pub use python::Interpreter;
pub(crate) use size::disk_usage;

use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Backend, Result, Sandbox, Spec};
use linked_files::LinkedFiles;
use state_store::Cache;

/// Under root, the host's user that tools run as in namespaces: one that nobody has.
const NOBODY_ELSE: u32 = 777_001_000;

/// Under root and in place, each sandbox gets a user of its own from here on: files of other sandboxes are in its sight.
const NOBODY_ELSE_IN_PLACE: u32 = 777_010_000;

const REDUCED: &str = "reduced isolation: Landlock and seccomp without namespaces; code of the repository sees which paths and \
     processes exist here, and runs beside them";

#[derive(Debug, Clone, Default)]
pub struct LocalSettings {
    /// Where sandboxes and saved states are.
    pub cache: PathBuf,
    /// Program and arguments that end in [`jail_main`].
    pub launcher: Vec<OsString>,
    /// Run without isolation where none can be had.
    pub no_isolation: bool,
    /// This isolation and no other.
    pub force: Option<Isolation>,
    /// A container is around all of this (see [`in_container`]): reduced isolation may stand in for namespaces.
    pub in_container: bool,
}

pub struct Local {
    inner: Arc<Inner>,
}

/// What keeps sandboxes in on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalSecurity {
    pub isolation: Isolation,
    /// What runs inside belongs to a user of its own.
    pub own_user: bool,
    /// The kernel counts the memory of all processes together; else they are watched.
    pub memory_is_counted: bool,
}

pub struct Inner {
    cache: Cache,
    launcher: Vec<OsString>,
    isolation: Isolation,
    overlay: bool,
    memory_is_counted: bool,
    root: bool,
    interpreters: Mutex<HashMap<String, Interpreter>>,
    linked_files: LinkedFiles,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.cache.finish_removals();
    }
}

impl Inner {
    /// The host's user that owns what a sandbox writes; none but under root.
    fn owner(&self, sandbox: &str) -> Option<u32> {
        match self.isolation {
            Isolation::Namespaces => self.root.then_some(NOBODY_ELSE),
            Isolation::Landlock => self.root.then(|| {
                let hash = sandbox.bytes().fold(5381u32, |hash, byte| {
                    hash.wrapping_mul(33) ^ u32::from(byte)
                });
                NOBODY_ELSE_IN_PLACE + hash % 900_000
            }),
            Isolation::None => None,
        }
    }

    /// Sandboxes share files with saved states. In place only if their processes are other users: what keeps them from a
    /// file of the same user is one wall, and a second one is worth a copy.
    fn shares_files(&self) -> bool {
        match self.isolation {
            Isolation::Namespaces => true,
            Isolation::Landlock => self.root,
            Isolation::None => false,
        }
    }

    /// The user that owns the workspace of a saved state: it is seen through an overlay in namespaces, and else copied.
    fn owner_of_states(&self) -> Option<u32> {
        (self.root && self.isolation == Isolation::Namespaces).then_some(NOBODY_ELSE)
    }

    fn interpreter(&self, version: &str) -> Result<Interpreter> {
        let lock = || {
            self.interpreters
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = lock().get(version) {
            return Ok(known.clone());
        }
        let found = python::find(version)?;
        lock().insert(version.to_owned(), found.clone());
        Ok(found)
    }
}

impl Local {
    /// Finds out which isolation can be had (starts a launcher for each that is tried).
    pub fn new(settings: LocalSettings) -> Result<Local> {
        let cache = Cache::open(&settings.cache)?;
        let probe = probe::choose(&settings, &cache)?;
        let root = nix::unistd::geteuid().is_root();
        Ok(Local {
            inner: Arc::new(Inner {
                cache,
                launcher: settings.launcher,
                isolation: probe.isolation,
                overlay: probe.overlay,
                memory_is_counted: probe.memory_is_counted,
                root,
                interpreters: Mutex::default(),
                linked_files: LinkedFiles::default(),
            }),
        })
    }

    pub fn isolation(&self) -> Isolation {
        self.inner.isolation
    }

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

    fn own_loopback(&self) -> bool {
        self.inner.isolation == Isolation::Namespaces
    }

    fn caution(&self) -> Option<&'static str> {
        match self.inner.isolation {
            Isolation::Namespaces => None,
            Isolation::Landlock => Some(REDUCED),
            Isolation::None => Some("no isolation: code of the repository can do whatever you can"),
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
        tokio::task::spawn_blocking(move || inner.cache.state_bytes(&name))
            .await
            .map_err(|e| SandboxError::new(ErrorKind::System, format!("look at a state: {e}")))?
    }

    async fn remove_saved(&self, name: &str) -> Result<()> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || inner.cache.remove_state(&name))
            .await
            .map_err(|e| SandboxError::new(ErrorKind::System, format!("remove a state: {e}")))?
    }

    async fn export_saved(&self, name: &str, to: &Path) -> Result<()> {
        let (inner, name, to) = (self.inner.clone(), name.to_owned(), to.to_owned());
        tokio::task::spawn_blocking(move || state_archive::export(&inner.cache, &name, &to))
            .await
            .map_err(|e| SandboxError::new(ErrorKind::System, format!("pack a state: {e}")))?
    }

    async fn import_saved(&self, name: &str, from: &Path) -> Result<()> {
        let (inner, name, from) = (self.inner.clone(), name.to_owned(), from.to_owned());
        tokio::task::spawn_blocking(move || state_archive::import(&inner, &name, &from))
            .await
            .map_err(|e| SandboxError::new(ErrorKind::System, format!("unpack a state: {e}")))?
    }

    /// The system and the interpreter are this machine's own, and virtual environments name the interpreter's path.
    async fn machine(&self, python: Option<&str>) -> Result<String> {
        let (inner, python) = (self.inner.clone(), python.map(str::to_owned));
        tokio::task::spawn_blocking(move || {
            let python = match python {
                Some(version) => python::describe(&inner.interpreter(&version)?)?,
                None => String::new(),
            };
            Ok(format!("{}\n{python}", python::system()))
        })
        .await
        .map_err(|e| SandboxError::new(ErrorKind::System, format!("look for Python: {e}")))?
    }

    async fn check_python(&self, version: &str) -> Result<()> {
        let (inner, version) = (self.inner.clone(), version.to_owned());
        tokio::task::spawn_blocking(move || inner.interpreter(&version).map(drop))
            .await
            .map_err(|e| SandboxError::new(ErrorKind::System, format!("look for Python: {e}")))?
    }

    async fn image_digest(&self, name: &str) -> Result<String> {
        Err(sandbox_dirs::no_images(name))
    }

    async fn clean(&self) -> Result<Vec<String>> {
        let inner = self.inner.clone();
        tokio::task::spawn_blocking(move || inner.cache.clean())
            .await
            .map_err(|e| SandboxError::new(ErrorKind::System, format!("clean up: {e}")))
    }
}
