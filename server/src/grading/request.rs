//! The request for a grading, as the store keeps it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use testwright_evals::Instance;
use testwright_evals::harness::{Harness, grading_key};
use testwright_evals::predictions::Prediction;
use testwright_sandboxes::Limits;
use testwright_sandboxes::recipe::Recipe;

use crate::harnesses::HarnessCache;
use testwright_comparisons::grading::GradingRun;
use testwright_config::error::{Error, Result};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GradingRequest {
    /// The instance, with its golden patches.
    pub instance: Instance,
    pub predictions: Vec<Prediction>,
    /// Keys by which the requester identifies the results.
    pub keys: Vec<String>,
    pub settings: GradingSettings,
}

/// Settings for grading. The worker chooses the kind of sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GradingSettings {
    /// Template of the repositories' addresses, with `{owner}` and `{name}`.
    repositories: String,
    /// Timeout of a test run, in seconds.
    test_seconds: u64,
    python: Option<String>,
    #[serde(default)]
    environment: Option<Recipe>,
    image: Option<String>,
    limits: Limits,
}

impl GradingSettings {
    pub(super) fn from_grading(grading: &GradingRun) -> Self {
        let settings = &grading.settings;
        GradingSettings {
            repositories: grading.options.repositories.clone(),
            test_seconds: grading.options.test_seconds,
            python: settings.run.python.clone(),
            environment: settings.named_environment().cloned(),
            image: settings.run.image.clone(),
            limits: settings.limits.sandbox(),
        }
    }
}

impl GradingRequest {
    /// Returns a harness that grades with the requester's settings; its logs go below `out`.
    pub(super) async fn harness(&self, harnesses: &HarnessCache, out: PathBuf) -> Result<Harness> {
        let settings = &self.settings;
        let shared_harness = harnesses
            .get(&settings.repositories, settings.test_seconds)
            .await?;
        let harness = Harness {
            python: settings.python.clone(),
            environment: settings.environment.clone(),
            image: settings.image.clone(),
            limits: settings.limits.clone(),
            out,
            ..shared_harness.as_ref().clone()
        };
        let keys = self.predictions.iter();
        let keys = keys.map(|prediction| grading_key(&harness, &self.instance, prediction));
        if keys.eq(self.keys.iter().cloned()) {
            return Ok(harness);
        }
        Err(
            Error::infrastructure("grade with the requester's settings").cause(format!(
                "a worker with testwright {} and the sandbox `{}` would grade differently",
                env!("CARGO_PKG_VERSION"),
                harness.backend.name()
            )),
        )
    }
}
