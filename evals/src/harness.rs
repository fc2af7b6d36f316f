//! The harness: runs the tests of predictions on the old and on the new code, and says how they came out.
//!
//! Old and new code are two states of one prepared environment; every run has a sandbox of its own, started from the
//! saved state. Runs are cached by content ([`test_run_cache`]): of those that an instance needs, the ones that do not
//! depend on the prediction are made once. Nothing here decides what an outcome means: see [`crate::verdict`].

#[cfg(not(fuzzing))]
mod changed_lines;
#[cfg(fuzzing)]
pub mod changed_lines;
mod contribution;
mod coverage;
mod coverage_metrics;
mod files;
mod grade;
mod grading_key;
mod instance;
mod leakage;
mod logs;
mod outcome_pairs;
mod patch_selection;
mod portable_result;
mod results;
mod run_config;
mod runs;
mod schedule;
mod test_run_cache;
mod timeline;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use testwright_sandboxes::environment::BuildSettings;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe::{Overrides, Recipe};
use testwright_sandboxes::repository::OpenOptions;
use testwright_sandboxes::{Backend, Limits, SandboxError, SandboxSource, Spec};

use crate::result::Infrastructure;

pub use changed_lines::ChangedLines;
pub(crate) use contribution::{CONFIGURATION, layout};
pub use grading_key::{key as grading_key, not_graded};
pub use patch_selection::{SelectionJob, select_all};
pub use portable_result::PortableResult;
pub use results::{Results, ResultsError};
pub(crate) use run_config::run_config;
pub use schedule::{Job, Progress, Step, Workers, grade_all, grade_job, ungraded, workers};

/// Changes when the same runs would be judged otherwise.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/8");
/// Changes when the same runs would be made otherwise.
const RUNS: &str = concat!(env!("CARGO_PKG_VERSION"), "/5");

/// What the harness works with.
#[derive(Clone)]
pub struct Harness {
    pub backend: Arc<dyn Backend>,
    pub build: BuildSettings,
    pub open: OpenOptions,
    /// Where git comes from: `{owner}` and `{name}` are put in.
    pub repositories: String,
    pub python: Option<String>,
    /// What holds for the environment of every instance.
    pub environment: Option<Recipe>,
    /// A ready image instead of a built environment; `{instance_id}` is put in.
    pub image: Option<String>,
    /// Python versions that the backend has.
    pub pythons: Vec<String>,
    /// A program that is the toolbox by that name, whatever there is in a sandbox.
    pub toolbox: PathBuf,
    pub limits: Limits,
    /// Longest time of one run of tests.
    pub test_time: Duration,
    /// What took too long before that may not do so again.
    pub begun: SystemTime,
    /// For labels of sandboxes.
    pub purpose: String,
    /// Where environments, clones and runs are kept.
    pub cache: PathBuf,
    /// Folder of the results; logs go below it.
    pub out: PathBuf,
}

/// In [`crate::InstanceResult::logs`]: outcomes of all tests of the prediction's files, with it, as JSON.
pub const TESTS: &str = "tests";

/// The forge's own address.
pub const FORGE: &str = "https://github.com/{owner}/{name}";

impl Harness {
    pub fn location(&self, repo: &str) -> String {
        let (owner, name) = repo.split_once('/').unwrap_or(("", repo));
        self.repositories
            .replace("{owner}", owner)
            .replace("{name}", name)
    }

    fn overrides(&self, instance_id: &str) -> Result<Overrides, SandboxError> {
        // Names of images are lower-case, and two underscores are not allowed in a row: as SWE-bench publishes them.
        let id = instance_id.to_lowercase();
        let image = self.image.as_ref().map(|template| {
            template
                .replace("{instance_id}", &id)
                .replace("{instance_id_1776}", &id.replace("__", "_1776_"))
        });
        // Anything else may name another registry, another image or another tag.
        let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if image != self.image && (!id.bytes().all(is_fit) || id.contains("..")) {
            let message = format!("the id `{instance_id}` cannot be part of an image's name");
            return Err(SandboxError::new(ErrorKind::Input, message));
        }
        Ok(Overrides {
            keys: self
                .environment
                .as_ref()
                .map(|recipe| (recipe.keys(), "settings".to_owned())),
            python: self.python.clone(),
            image,
            no_built_in: false,
            pythons: self.pythons.clone(),
            preferred_python: None,
        })
    }
}

/// What keeps an instance from being graded.
type GradingFailure = Box<Infrastructure>;

fn at_stage(stage: &str) -> impl Fn(SandboxError) -> GradingFailure + '_ {
    move |error| {
        let cause = match &error.hint {
            Some(hint) => format!("{error} ({hint})"),
            None => error.to_string(),
        };
        Box::new(Infrastructure {
            stage: stage.to_owned(),
            cause,
            shortage: error.shortage(),
            log: error.log.map(|log| log.display().to_string()),
        })
    }
}

/// A sandbox that starts from a saved state, without a network or the host's folders.
pub(crate) fn offline(saved: &str, limits: &Limits, purpose: &str) -> Spec {
    Spec {
        start: SandboxSource::Saved(saved.to_owned()),
        network: false,
        host_port: None,
        root: false,
        limits: limits.clone(),
        env: Default::default(),
        mounts: Vec::new(),
        purpose: purpose.to_owned(),
    }
}
