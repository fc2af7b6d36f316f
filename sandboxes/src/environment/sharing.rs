//! Environments that machines share: one machine builds a state, the others fetch it.
//!
//! A failure on the way costs time but fails no run, because the environment is then built locally.
//!
//! A fetched state works as on the machine that built it. Its key covers all inputs of the build
//! ([`super::cache_keys`]) and what the backend reports about the machine ([`Backend::machine`]). Environments that
//! start from an image with its own name are not shared, because every machine pulls that image anyway and it would
//! make up most of the archive.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{BuildEvent, BuildSettings, Progress};
use crate::hex::hex;
use crate::private;
use crate::recipe::Recipe;
use crate::sandbox::{Backend, Result};

/// Interval of checks whether another machine has finished its build.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A store through which machines share environments.
#[async_trait]
pub trait SharedEnvironments: std::fmt::Debug + Send + Sync {
    /// Fetches the record stored under a key and writes its archive to a file. Returns `None` if there is no record.
    async fn fetch(&self, key: &str, archive: &Path) -> Result<Option<String>>;

    /// Stores the record and the archive of a state under a key, for other machines.
    async fn publish(&self, key: &str, record: &str, archive: &Path) -> Result<()>;

    /// Claims the build of the state for a key. Returns `None` if another process has the claim.
    async fn claim(&self, key: &str) -> Result<Option<BuildClaim>>;
}

/// A claim on a build. Others wait until it is dropped or its process ends.
pub type BuildClaim = Box<dyn Send + Sync>;

/// The outcome of a search for a state that is not in the cache.
pub(super) enum FetchOutcome<T> {
    /// The state was fetched into the cache.
    Fetched(T),
    /// The state must be built here.
    Missing(Option<BuildClaim>),
}

/// The sharing of one build's inputs and results.
pub(super) struct Sharing<'a> {
    store: Arc<dyn SharedEnvironments>,
    backend: &'a dyn Backend,
    progress: Progress<'a>,
    /// Folder for archives that are being read or written.
    folder: PathBuf,
    /// Digest of the properties that machines must have in common.
    machine: String,
}

impl<'a> Sharing<'a> {
    /// Returns `None` if nothing is shared.
    pub(super) async fn new(
        backend: &'a dyn Backend,
        recipe: &Recipe,
        settings: &BuildSettings,
        progress: Progress<'a>,
    ) -> Option<Sharing<'a>> {
        let store = settings.shared.clone()?;
        if recipe.image.is_some() {
            return None;
        }
        let folder = settings.cache.join("archives");
        let machine = match private::create_closed(&folder) {
            Ok(()) => backend.machine(recipe.python.as_deref()).await,
            Err(error) => Err(error.into()),
        };
        match machine {
            Ok(machine) => Some(Sharing {
                store,
                backend,
                progress,
                folder,
                machine: hex(&Sha256::digest(machine.as_bytes())[..8]),
            }),
            Err(error) => {
                tracing::warn!(%error, "environments are not shared");
                None
            }
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{name}-{}", self.machine)
    }

    /// Fetches a state, or returns that it must be built here. Waits if another machine is building it.
    pub(super) async fn fetch_or_claim<T: DeserializeOwned>(&self, name: &str) -> FetchOutcome<T> {
        let mut waits = false;
        loop {
            if let Some(found) = self.fetch(name).await {
                return FetchOutcome::Fetched(found);
            }
            match self.store.claim(&self.key(name)).await {
                Ok(None) => {
                    if !std::mem::replace(&mut waits, true) {
                        (self.progress)(BuildEvent::Waiting);
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                // Another machine may have published it in the meantime.
                Ok(claim) => match self.fetch(name).await {
                    Some(found) => return FetchOutcome::Fetched(found),
                    None => return FetchOutcome::Missing(claim),
                },
                Err(error) => {
                    tracing::warn!(%error, "could not claim the build of an environment; building it anyway");
                    return FetchOutcome::Missing(None);
                }
            }
        }
    }

    async fn fetch<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.try_fetch(name).await.unwrap_or_else(|error| {
            tracing::warn!(%error, name, "could not fetch a shared environment");
            None
        })
    }

    async fn try_fetch<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let archive = tempfile::NamedTempFile::new_in(&self.folder)?;
        let begun = Instant::now();
        let fetched = self.store.fetch(&self.key(name), archive.path()).await?;
        // A record in another format version counts as missing.
        let Some(record) = fetched.and_then(|record| serde_json::from_str(&record).ok()) else {
            return Ok(None);
        };
        let step = "unpack the environment of another machine".to_owned();
        (self.progress)(BuildEvent::Started { step: step.clone() });
        self.backend.import_saved(name, archive.path()).await?;
        let seconds = begun.elapsed().as_secs_f64();
        (self.progress)(BuildEvent::Finished { step, seconds });
        Ok(Some(record))
    }

    /// Publishes a state of the cache for other machines.
    pub(super) async fn publish(&self, name: &str, record: &impl Serialize) {
        let step = "share the environment with other machines".to_owned();
        (self.progress)(BuildEvent::Started { step: step.clone() });
        let begun = Instant::now();
        if let Err(error) = self.try_publish(name, record).await {
            tracing::warn!(%error, name, "could not share an environment");
        }
        let seconds = begun.elapsed().as_secs_f64();
        (self.progress)(BuildEvent::Finished { step, seconds });
    }

    async fn try_publish(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let archive = tempfile::NamedTempFile::new_in(&self.folder)?;
        self.backend.export_saved(name, archive.path()).await?;
        let record = serde_json::to_string(record).map_err(std::io::Error::from)?;
        let key = self.key(name);
        self.store.publish(&key, &record, archive.path()).await
    }
}
