//! The state that all steps of one build share. The steps themselves are in separate files.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use super::before_tests::FailedCommand;
use super::cache_keys::Plan;
use super::log::Log;
use super::sharing::Sharing;
use super::steps::secret;
use super::{BuildSettings, Progress, locked};
use crate::egress::{Egress, EgressSettings};
use crate::recipe::Recipe;
use crate::repository::Source;
use crate::sandbox::{Backend, Result};

/// The inputs of a build.
pub(super) struct BuildInput<'a> {
    pub backend: &'a dyn Backend,
    pub source: &'a Source,
    pub recipe: &'a Recipe,
    pub origin: &'a str,
    pub settings: &'a BuildSettings,
    pub plan: &'a Plan,
    /// Access to environments that other machines built.
    pub sharing: Option<&'a Sharing<'a>>,
    pub progress: Progress<'a>,
    /// Time before the locks and the search on other machines.
    pub begun: Instant,
    /// Knowledge about a better build, and notes about omissions.
    pub findings: &'a Findings,
}

/// Everything that the steps of a build need.
pub(super) struct Build<'a> {
    pub input: &'a BuildInput<'a>,
    pub log: &'a Log,
    pub uv: PathBuf,
    pub egress: &'a Egress,
    /// Time after the locks and the search on other machines.
    pub begun: Instant,
}

impl<'a> Deref for Build<'a> {
    type Target = BuildInput<'a>;

    fn deref(&self) -> &BuildInput<'a> {
        self.input
    }
}

/// Results of a build that outlast its failure.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Older Python that can install a pinned requirement.
    pub older_python: Mutex<Option<String>>,
    /// Notes about what was left out so far.
    pub omissions: Mutex<Vec<String>>,
    /// Guessed command before the tests that timed out.
    pub slow_command: OnceLock<FailedCommand>,
}

impl Findings {
    /// Returns the older Python that the next attempt should use.
    pub(super) fn older_python(&self) -> Option<String> {
        locked(&self.older_python).clone()
    }

    /// Returns the notes so far.
    pub(super) fn omissions(&self) -> Vec<String> {
        locked(&self.omissions).clone()
    }

    /// Remembers notes about what was left out.
    pub(super) fn omit(&self, notes: &[String]) {
        locked(&self.omissions).extend(notes.iter().cloned());
    }
}

impl BuildSettings {
    /// Creates the log of a build with this name.
    pub(super) fn log(&self, name: &str) -> Result<Log> {
        let path = self.cache.join("logs").join(format!("{name}.log"));
        let urls = self.index_url.iter().chain(&self.extra_index_urls);
        let urls = urls.chain(self.proxies.values());
        Log::create(path, urls.filter_map(|u| secret(u)).collect())
    }

    /// Creates the network access of a build.
    pub(super) fn egress(&self) -> Result<Egress> {
        Egress::new(&EgressSettings {
            cache: self.cache.clone(),
            max_cache_bytes: self.cache_size / 10,
            max_download_bytes: self.limits.disk,
            index_url: self.index_url.clone(),
            extra_index_urls: self.extra_index_urls.clone(),
            proxies: self.proxies.clone(),
            ca_bundle: self.ca_bundle.clone(),
            offline: self.offline,
            allowed_hosts: self.allowed_hosts.clone(),
        })
    }
}
