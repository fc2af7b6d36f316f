//! Shared environments: one machine builds an environment, others fetch it.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{BuildClaim, SharedEnvironments};
use testwright_sandboxes::error::ErrorKind;

use super::{Artifacts, Digest};
use crate::json::encode;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Time without a fetch after which an environment is removed.
pub const UNUSED_RETENTION: Duration = Duration::from_secs(30 * DAY);
/// Age of an entry after which a fetch renews its timestamp.
const TOUCH_INTERVAL: Duration = Duration::from_secs(DAY);
const DAY: u64 = 24 * 3600;

const FOLDER: &str = "environments";

/// An entry, written after its archive.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// Digest of the archive.
    archive: String,
    bytes: u64,
    /// The builder's metadata, as JSON.
    record: String,
}

impl Entry {
    fn digest(&self) -> Result<Digest> {
        let digest = Digest::parse(&self.archive);
        digest.ok_or_else(|| Error::infrastructure("read the entry of a shared environment"))
    }
}

/// An environment that machines share.
#[derive(Debug)]
pub struct SharedEnvironment {
    entry: Path,
    /// Digest of the archive; `None` if another version wrote the entry.
    archive: Option<Digest>,
    /// Size of the archive in bytes.
    pub bytes: u64,
    /// Time of creation or the last fetch, to within a day.
    pub used: SystemTime,
}

fn age(time: SystemTime) -> Duration {
    SystemTime::now().duration_since(time).unwrap_or_default()
}

impl Artifacts {
    fn entry_path(&self, key: &str, ending: &str) -> Path {
        let prefix = self.prefix.clone();
        prefix.join(FOLDER).join(format!("{key}.{ending}"))
    }

    async fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let content = self.read_object(path).await?;
        // Entries of other versions are treated as missing.
        Ok(content.and_then(|content| serde_json::from_slice(&content).ok()))
    }

    async fn write_entry(&self, path: &Path, entry: &Entry) -> Result<()> {
        let text = encode(entry, "describe a shared environment")?;
        let put = self.store.put(path, text.into()).await;
        put.map(drop).map_err(|e| self.failed("write to", &e))
    }

    async fn fetch_environment(&self, key: &str, archive: &FilePath) -> Result<Option<String>> {
        let path = self.entry_path(key, "json");
        let Some(entry) = self.entry(&path).await? else {
            return Ok(None);
        };
        // If the archive has been removed, the caller builds the environment.
        if !self.fetch(&entry.digest()?, archive).await? {
            return Ok(None);
        }
        let head = self.store.head(&path).await;
        if head.is_ok_and(|metadata| age(metadata.last_modified.into()) > TOUCH_INTERVAL) {
            self.write_entry(&path, &entry).await?;
        }
        Ok(Some(entry.record))
    }

    async fn put_environment(&self, key: &str, record: &str, archive: &FilePath) -> Result<()> {
        let path = self.entry_path(key, "json");
        let before = self.entry(&path).await?;
        let blob = self.put_file(archive).await?;
        let entry = Entry {
            archive: blob.digest.as_str().to_owned(),
            bytes: blob.bytes,
            record: record.to_owned(),
        };
        self.write_entry(&path, &entry).await?;
        match before {
            Some(before) if before.archive != entry.archive => self.remove(&before.digest()?).await,
            _ => Ok(()),
        }
    }

    /// Lists all shared environments.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed or read, or if an entry contains an invalid digest.
    pub async fn environments(&self) -> Result<Vec<SharedEnvironment>> {
        let folder = self.prefix.clone().join(FOLDER);
        let objects = self.store.list(Some(&folder)).try_collect::<Vec<_>>().await;
        let objects = objects.map_err(|e| self.failed("list", &e))?;
        let entries = objects
            .into_iter()
            .filter(|object| object.location.extension() == Some("json"));
        let mut environments = Vec::new();
        for object in entries {
            let entry = self.entry(&object.location).await?;
            environments.push(SharedEnvironment {
                archive: entry.as_ref().map(Entry::digest).transpose()?,
                bytes: entry.map_or(0, |entry| entry.bytes),
                used: object.last_modified.into(),
                entry: object.location,
            });
        }
        Ok(environments)
    }

    /// Removes an environment. A process that is fetching it builds it instead.
    ///
    /// # Errors
    ///
    /// Fails if an object cannot be removed. A missing object is not an error.
    pub async fn remove_environment(&self, environment: &SharedEnvironment) -> Result<()> {
        self.remove_object(&environment.entry).await?;
        match &environment.archive {
            Some(archive) => self.remove(archive).await,
            None => Ok(()),
        }
    }

    /// Removes environments that no machine has fetched for this long, and returns their number.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed or read, or if an object cannot be removed.
    pub async fn remove_unused_environments(&self, unused: Duration) -> Result<u64> {
        let mut removed = 0;
        for environment in self.environments().await? {
            if age(environment.used) >= unused {
                self.remove_environment(&environment).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Converts an error for the environment builder.
fn to_sandbox_error(error: Error) -> SandboxError {
    let sandbox_error = SandboxError::new(ErrorKind::System, error.with_cause());
    match error.hint {
        Some(hint) => sandbox_error.hint(hint),
        None => sandbox_error,
    }
}

/// Returns the store of environments that the settings name.
///
/// # Errors
///
/// Fails if the setting does not name a usable store.
pub fn shared_environments(settings: &Settings) -> Result<Option<Arc<dyn SharedEnvironments>>> {
    let artifacts = Artifacts::of_settings(settings)?;
    Ok(artifacts.map(|artifacts| Arc::new(artifacts) as Arc<dyn SharedEnvironments>))
}

#[async_trait]
impl SharedEnvironments for Artifacts {
    async fn fetch(
        &self,
        key: &str,
        archive: &FilePath,
    ) -> std::result::Result<Option<String>, SandboxError> {
        self.fetch_environment(key, archive)
            .await
            .map_err(to_sandbox_error)
    }

    async fn publish(
        &self,
        key: &str,
        record: &str,
        archive: &FilePath,
    ) -> std::result::Result<(), SandboxError> {
        self.put_environment(key, record, archive)
            .await
            .map_err(to_sandbox_error)
    }

    async fn claim(&self, key: &str) -> std::result::Result<Option<BuildClaim>, SandboxError> {
        let claim = self.claim(self.entry_path(key, "claim")).await;
        let claim = claim.map_err(to_sandbox_error)?;
        Ok(claim.map(|claim| Box::new(claim) as BuildClaim))
    }
}
