//! The state that all steps of one build share. The steps themselves are in separate files.

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
}

/// Everything that the steps of a build need.
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
    /// Runs backend work and logs its duration, as for the steps of the build.
    pub(super) async fn timed<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
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
