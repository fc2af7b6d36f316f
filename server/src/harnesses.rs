//! A cache of harnesses: connecting to an engine and cleaning up after killed runs take time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use testwright_evals::harness::Harness;
use tokio::sync::Mutex;

use crate::artifacts::shared_environments;
use testwright_agent::setup::{self, HarnessArgs};
use testwright_config::error::Result;
use testwright_config::settings::Settings;

/// Key of a harness: the template of repository URLs, and the timeout of a test run in seconds.
type Key = (String, u64);

pub struct HarnessCache {
    pub settings: Settings,
    folder: PathBuf,
    harnesses: Mutex<BTreeMap<Key, Arc<Harness>>>,
}

impl HarnessCache {
    pub fn new(settings: &Settings, folder: &Path) -> Self {
        HarnessCache {
            settings: settings.clone(),
            folder: folder.to_owned(),
            harnesses: Mutex::default(),
        }
    }

    /// Returns the harness for a key, from the cache if possible.
    ///
    /// # Errors
    ///
    /// Fails if the artifact store or the harness cannot be set up.
    pub async fn get(&self, repositories: &str, test_seconds: u64) -> Result<Arc<Harness>> {
        let key = (repositories.to_owned(), test_seconds);
        let mut cache = self.harnesses.lock().await;
        if let Some(harness) = cache.get(&key) {
            return Ok(harness.clone());
        }
        let args = HarnessArgs {
            repositories: repositories.to_owned(),
            test_time: Duration::from_secs(test_seconds),
            out: self.folder.join("graded"),
            shared: shared_environments(&self.settings)?,
        };
        let (harness, notes) = setup::harness(&self.settings, args).await?;
        for note in notes {
            tracing::warn!("{note}");
        }
        let harness = Arc::new(harness);
        cache.insert(key, harness.clone());
        Ok(harness)
    }
}
