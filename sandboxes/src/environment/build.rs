//! One build: what all of its steps need. The steps themselves are in files of their own.

use std::path::PathBuf;
use std::time::Instant;

use super::cache_keys::Plan;
use super::log::Log;
use super::sharing::Sharing;
use super::{BuildSettings, Progress};
use crate::egress::Egress;
use crate::recipe::Recipe;
use crate::repository::Source;
use crate::sandbox::{Backend, Result};

/// What is to be built, and where.
pub(super) struct BuildInput<'a> {
    pub backend: &'a dyn Backend,
    pub source: &'a Source,
    pub recipe: &'a Recipe,
    pub origin: &'a str,
    pub settings: &'a BuildSettings,
    pub plan: &'a Plan,
    /// With other machines.
    pub sharing: Option<&'a Sharing<'a>>,
    pub progress: Progress<'a>,
}

/// What all steps of a build need.
pub(super) struct Build<'a> {
    pub backend: &'a dyn Backend,
    pub source: &'a Source,
    pub recipe: &'a Recipe,
    pub settings: &'a BuildSettings,
    pub plan: &'a Plan,
    pub sharing: Option<&'a Sharing<'a>>,
    pub progress: Progress<'a>,
    pub log: &'a Log,
    pub uv: PathBuf,
    pub egress: &'a Egress,
}

impl Build<'_> {
    /// What a backend does counts too: it is in the log with its time.
    pub async fn timed<T>(&self, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let begun = Instant::now();
        let done = work.await;
        let ended = if done.is_ok() { "" } else { " (failed)" };
        self.log.line(&format!(
            "-- {what}{ended}: {:.1} s",
            begun.elapsed().as_secs_f64()
        ));
        done
    }
}
