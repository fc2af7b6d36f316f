//! Environments that machines share: what one has built is put where the others fetch it. Whatever fails on the way costs
//! time and no run: then the environment is built here.
//!
//! A state is fetched where it would work as it did where it was built: its key names all that it was built from
//! ([`super::cache_keys`]) and what the backend says of the machine ([`Backend::machine`]). Environments that start from an
//! image with a name of its own are left out: every machine pulls that image anyway, and most of the archive would be it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{BuildSettings, Event, Progress};
use crate::hex::hex;
use crate::private;
use crate::recipe::Recipe;
use crate::sandbox::{Backend, Result};

/// How often is asked whether another machine is done.
const ASKED_EVERY: Duration = Duration::from_secs(2);

/// Where machines share environments.
#[async_trait]
pub trait SharedEnvironments: std::fmt::Debug + Send + Sync {
    /// What was put there under a key; its archive is written to a file. `None` where there is nothing.
    async fn fetch(&self, key: &str, archive: &Path) -> Result<Option<String>>;

    async fn put(&self, key: &str, record: &str, archive: &Path) -> Result<()>;

    /// Says that this process builds what is to be put under a key; `None` where another does.
    async fn claim(&self, key: &str) -> Result<Option<BuildClaim>>;
}

/// Others wait until it is dropped, or the process that holds it is gone.
pub type BuildClaim = Box<dyn Send + Sync>;

/// What became of a state that is not in the cache.
pub(super) enum Obtained<T> {
    /// It is in the cache now.
    Fetched(T),
    /// It is to be built here.
    Missing(Option<BuildClaim>),
}

/// Shares what one build needs and makes.
pub(super) struct Sharing<'a> {
    store: Arc<dyn SharedEnvironments>,
    backend: &'a dyn Backend,
    progress: Progress<'a>,
    /// Archives are here while they are read and written.
    folder: PathBuf,
    /// Digest of what machines have to have in common.
    machine: String,
}

impl<'a> Sharing<'a> {
    /// `None` where nothing is shared.
    pub async fn new(
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

    /// Fetches a state, unless it is to be built here: waits for another machine that builds it.
    pub async fn obtain<T: DeserializeOwned>(&self, name: &str) -> Obtained<T> {
        let mut waits = false;
        loop {
            if let Some(found) = self.fetch(name).await {
                return Obtained::Fetched(found);
            }
            match self.store.claim(&self.key(name)).await {
                Ok(None) => {
                    if !std::mem::replace(&mut waits, true) {
                        (self.progress)(Event::Waiting);
                    }
                    tokio::time::sleep(ASKED_EVERY).await;
                }
                // It may have come in between.
                Ok(claim) => match self.fetch(name).await {
                    Some(found) => return Obtained::Fetched(found),
                    None => return Obtained::Missing(claim),
                },
                Err(error) => {
                    tracing::warn!(%error, "an environment is built without a claim");
                    return Obtained::Missing(None);
                }
            }
        }
    }

    async fn fetch<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        match self.try_fetch(name).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, name, "a shared environment was not fetched");
                None
            }
        }
    }

    async fn try_fetch<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let archive = tempfile::NamedTempFile::new_in(&self.folder)?;
        let begun = Instant::now();
        let fetched = self.store.fetch(&self.key(name), archive.path()).await?;
        // A record of another version is as good as none.
        let Some(record) = fetched.and_then(|record| serde_json::from_str(&record).ok()) else {
            return Ok(None);
        };
        let step = "unpack what another machine has built".to_owned();
        (self.progress)(Event::Started { step: step.clone() });
        self.backend.import_saved(name, archive.path()).await?;
        let seconds = begun.elapsed().as_secs_f64();
        (self.progress)(Event::Finished { step, seconds });
        Ok(Some(record))
    }

    /// Puts a state of the cache where others find it.
    pub async fn publish(&self, name: &str, record: &impl Serialize) {
        let step = "share it with other machines".to_owned();
        (self.progress)(Event::Started { step: step.clone() });
        let begun = Instant::now();
        if let Err(error) = self.try_publish(name, record).await {
            tracing::warn!(%error, name, "an environment was not shared");
        }
        let seconds = begun.elapsed().as_secs_f64();
        (self.progress)(Event::Finished { step, seconds });
    }

    async fn try_publish(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let archive = tempfile::NamedTempFile::new_in(&self.folder)?;
        self.backend.export_saved(name, archive.path()).await?;
        let record = serde_json::to_string(record).map_err(std::io::Error::from)?;
        let key = self.key(name);
        self.store.put(&key, &record, archive.path()).await
    }
}
