//! The harness: runs the tests of predictions on the old and the new code, and records their outcomes.
//!
//! Old and new code are two states of one prepared environment. Every run has its own sandbox, started from the saved
//! state. Runs are cached by content ([`test_run_cache`]), so runs that do not depend on the prediction happen once per
//! instance. The harness does not interpret outcomes: see [`crate::verdict`].

#[cfg(not(fuzzing))]
mod changed_lines;
#[cfg(fuzzing)]
pub mod changed_lines;
mod changed_tests;
mod code_patch;
mod contribution;
mod coverage;
mod coverage_metrics;
mod files;
mod foreign_files;
mod grade;
mod grading_key;
mod instance;
mod leakage;
mod logs;
mod outcome_pairs;
mod patch_selection;
mod portable_result;
mod progress;
mod repeats;
mod results;
mod run_config;
mod runner_use;
mod runs;
mod schedule;
mod sentinel;
mod special_files;
mod test_run_cache;
mod timeline;
mod traces;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use testwright_sandboxes::environment::BuildSettings;
use testwright_sandboxes::recipe::{Overrides, Recipe};
use testwright_sandboxes::repository::OpenOptions;
use testwright_sandboxes::{Backend, Limits, SandboxError, SandboxSource, Spec};

use crate::result::Infrastructure;

pub use changed_lines::ChangedLines;
pub(crate) use contribution::layout;
pub use grading_key::{key as grading_key, ungraded_result};
pub(crate) use logs::logged_pairs;
pub use patch_selection::{SelectionJob, select_all};
pub use portable_result::PortableResult;
pub use progress::{Progress, Step};
pub use results::{Results, ResultsError};
pub(crate) use run_config::run_config;
pub use schedule::{Job, Workers, grade_all, grade_job, ungraded, workers};

/// Version of grading; changes whenever the same runs would get other verdicts.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/11");
/// Version of the runs; changes whenever the harness would run tests differently.
const RUNS: &str = concat!(env!("CARGO_PKG_VERSION"), "/8");

/// Settings and services of the harness.
#[derive(Clone)]
pub struct Harness {
    /// Backend that runs the sandboxes.
    pub backend: Arc<dyn Backend>,
    /// Settings for building environments.
    pub build: BuildSettings,
    /// Options for opening repositories: token and offline mode.
    pub open: OpenOptions,
    /// URL or path template of repositories; `{owner}` and `{name}` are replaced.
    pub repositories: String,
    /// Python version for every instance; `None` chooses one by instance.
    pub python: Option<String>,
    /// Recipe that overrides the environment of every instance.
    pub environment: Option<Recipe>,
    /// Ready image to use in place of a built environment; `{instance_id}` is replaced.
    pub image: Option<String>,
    /// Python versions that the backend provides.
    pub pythons: Vec<String>,
    /// Path of the toolbox executable on this machine.
    pub toolbox: PathBuf,
    /// Resource limits of each sandbox.
    pub limits: Limits,
    /// Timeout of one test run.
    pub test_time: Duration,
    /// Start of the harness. Runs that timed out before it are tried again.
    pub begun: SystemTime,
    /// Text for the labels of sandboxes.
    pub purpose: String,
    /// Folder for environments, clones and runs.
    pub cache: PathBuf,
    /// Results folder, which also contains the logs.
    pub out: PathBuf,
}

/// Template of GitHub's own repositories.
pub const FORGE: &str = "https://github.com/{owner}/{name}";

impl Harness {
    /// Returns the URL or path of a repository, given as `owner/name`.
    pub fn location(&self, repo: &str) -> String {
        let (owner, name) = repo.split_once('/').unwrap_or(("", repo));
        self.repositories
            .replace("{owner}", owner)
            .replace("{name}", name)
    }

    fn overrides(&self, instance_id: &str) -> Result<Overrides, SandboxError> {
        // SWE-bench publishes images with lower-case names, in which two underscores in a row are not allowed.
        let id = instance_id.to_lowercase();
        let image = self.image.as_ref().map(|template| {
            template
                .replace("{instance_id}", &id)
                .replace("{instance_id_1776}", &id.replace("__", "_1776_"))
        });
        // Any other character could select another registry, image or tag.
        let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if image != self.image && (!id.bytes().all(is_fit) || id.contains("..")) {
            let message = format!("the id `{instance_id}` is not valid in an image name");
            return Err(SandboxError::input(message));
        }
        Ok(Overrides {
            keys: self
                .environment
                .as_ref()
                .map(|recipe| (recipe.keys(), "settings".to_owned())),
            python: self.python.clone(),
            image,
            pythons: self.pythons.clone(),
            ..Overrides::default()
        })
    }
}

/// Reason why an instance could not be graded.
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

/// Returns the specification of a sandbox that starts from a saved state, without a network or folders of the host.
pub(crate) fn offline(saved: &str, limits: &Limits, purpose: &str) -> Spec {
    Spec {
        limits: limits.clone(),
        ..Spec::new(SandboxSource::Saved(saved.to_owned()), purpose)
    }
}
