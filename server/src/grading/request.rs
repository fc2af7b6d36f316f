//! What a grading is asked for, as the store keeps it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use testwright_evals::Instance;
use testwright_evals::harness::{Harness, grading_key};
use testwright_evals::predictions::Prediction;
use testwright_sandboxes::Limits;
use testwright_sandboxes::recipe::Recipe;

use crate::harnesses::Harnesses;
use testwright_comparisons::grading::GradingRun;
use testwright_config::error::{Error, Result};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GradingRequest {
    /// With its golden patches.
    pub instance: Instance,
    pub predictions: Vec<Prediction>,
    /// By which whoever asked knows their results.
    pub keys: Vec<String>,
    pub settings: GradingSettings,
}

/// How it is graded. The kind of sandbox is the worker's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GradingSettings {
    /// Where git comes from: `{owner}` and `{name}` are put in.
    repositories: String,
    /// Longest time of one run of tests.
    test_seconds: u64,
    python: Option<String>,
    #[serde(default)]
    environment: Option<Recipe>,
    image: Option<String>,
    limits: Limits,
}

impl GradingSettings {
    pub fn of(grading: &GradingRun) -> Self {
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
    /// A harness that grades as whoever asked would; its logs go below `out`.
    pub async fn harness(&self, harnesses: &Harnesses, out: PathBuf) -> Result<Harness> {
        let settings = &self.settings;
        let made = harnesses
            .get(&settings.repositories, settings.test_seconds)
            .await?;
        let harness = Harness {
            python: settings.python.clone(),
            environment: settings.environment.clone(),
            image: settings.image.clone(),
            limits: settings.limits.clone(),
            out,
            ..made.as_ref().clone()
        };
        let keys = self.predictions.iter();
        let keys = keys.map(|prediction| grading_key(&harness, &self.instance, prediction));
        if keys.eq(self.keys.iter().cloned()) {
            return Ok(harness);
        }
        Err(Error::infrastructure("grade as it was asked for").cause(format!(
            "a worker of testwright {} with the sandbox `{}` grades otherwise than whoever asked",
            env!("CARGO_PKG_VERSION"),
            harness.backend.name()
        )))
    }
}
