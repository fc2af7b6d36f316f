//! The request for a comparison, as clients send it and as the store keeps it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use testwright_evals::Dataset;
use testwright_evals::harness::FORGE;

use crate::allow_list::AllowList;
use crate::fields::{MAX_NAME_LEN, check_name, check_path};
use crate::request::{RunLimits, allowed_model};
use testwright_comparisons::compare::{Inputs, Plan, PlanRequest};
use testwright_comparisons::grading::records;
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Effort, Settings};
use testwright_models::ModelName;

/// Maximum number of instances, and maximum number of approaches and of models.
const MAX_INSTANCES: usize = 1_000;
const MAX_NAMES: usize = 20;
/// Maximum number of runs of each approach with each model on each instance.
pub const MAX_SAMPLES: u32 = 100;
/// Maximum number of runs: the product of systems, instances and samples.
const MAX_RUNS: usize = 20_000;
/// Default and maximum timeout of a test run, in seconds.
const TEST_SECONDS: u64 = 900;
/// Maximum timeout of a test run, in seconds.
pub const MAX_TEST_SECONDS: u64 = 7_200;

/// A request to compare approaches and models on instances of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparisonRequest {
    /// Name of the comparison in lists.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Instances in the format of SWE-bench, up to 1,000. The server must allow their repositories.
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<Object>)]
    pub instances: Vec<Map<String, Value>>,
    /// Approaches, with their options, up to 20.
    #[schema(min_items = 1, max_items = 20)]
    pub approaches: Vec<String>,
    /// Models, by the names that their providers use, up to 20. Default: the server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 20)]
    pub models: Vec<String>,
    /// Number of runs of each approach with each model on each instance. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub samples: Option<u32>,
    /// Limits of the comparison and of each run.
    #[serde(default, skip_serializing_if = "ComparisonLimits::is_empty")]
    pub limits: ComparisonLimits,
    /// Effort level, which sets options of approaches that have levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^(low|medium|high)$")]
    pub effort: Option<Effort>,
    /// Address of the repositories: a URL or a folder on the server, with the placeholders `{owner}` and `{name}`.
    /// Default: GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repositories: Option<String>,
    /// Timeout of a test run during grading, in seconds. Default: 900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 7200)]
    pub test_seconds: Option<u64>,
}

/// Limits of a comparison. The server's limits apply too; larger values are reduced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparisonLimits {
    /// Maximum cost of all runs together, in US dollars. Every model needs a price in the server's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0)]
    pub dollars: Option<f64>,
    /// Maximum number of steps per run: model calls without reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub steps: Option<u32>,
    /// Maximum number of tokens per run (prompt and completion).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub tokens: Option<u64>,
    /// Maximum minutes per run, not counting the environment build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0)]
    pub minutes: Option<f64>,
}

/// A checked and planned comparison.
pub struct PreparedComparison {
    /// Instances of the request.
    pub dataset: Dataset,
    /// Runs to execute.
    pub plan: Plan,
    /// Inputs of the runs beyond the issues.
    pub inputs: Inputs,
    /// Settings of the server, with those of the request.
    pub settings: Settings,
}

fn refused(cause: impl std::fmt::Display) -> Error {
    Error::usage("read the request").cause(cause)
}

impl ComparisonLimits {
    fn is_empty(&self) -> bool {
        *self == ComparisonLimits::default()
    }

    fn check(&self) -> Result<()> {
        let limits = RunLimits {
            dollars: self.dollars,
            ..self.of_each_run()
        };
        match limits.problem() {
            None => Ok(()),
            Some(cause) => Err(refused(cause).hint("omit a limit to leave it unset")),
        }
    }

    /// Returns the limits of each run. The dollars are for all runs together.
    fn of_each_run(&self) -> RunLimits {
        RunLimits {
            steps: self.steps,
            dollars: None,
            tokens: self.tokens,
            minutes: self.minutes,
        }
    }
}

impl ComparisonRequest {
    /// Returns the address of the repositories, by default GitHub's.
    pub fn repositories(&self) -> &str {
        self.repositories.as_deref().unwrap_or(FORGE)
    }

    /// Returns the timeout of a test run, in seconds.
    pub fn test_seconds(&self) -> u64 {
        self.test_seconds.unwrap_or(TEST_SECONDS)
    }

    /// Checks the request and plans the comparison.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if a field is invalid, a limit is exceeded, or a model or repository is not allowed.
    pub fn check(&self, settings: &Settings, allowed: &AllowList) -> Result<PreparedComparison> {
        check_name("name", &self.name)?;
        if !(1..=MAX_NAME_LEN).contains(&self.name.chars().count()) {
            return Err(refused(format!(
                "`name` is not a line of 1 to {MAX_NAME_LEN} characters"
            )));
        }
        for approach in &self.approaches {
            check_name("approaches", approach)?;
        }
        check_path("repositories", self.repositories())?;
        for (what, number, most) in [
            ("instances", self.instances.len(), MAX_INSTANCES),
            ("approaches", self.approaches.len(), MAX_NAMES),
            ("models", self.models.len(), MAX_NAMES),
        ] {
            if number > most {
                return Err(refused(format!(
                    "there are {number} {what}; the maximum is {most}"
                )));
            }
        }
        if self.approaches.is_empty() || self.instances.is_empty() {
            return Err(refused("`approaches` or `instances` is empty"));
        }
        if !(1..=MAX_SAMPLES).contains(&self.samples.unwrap_or(1)) {
            return Err(refused(format!(
                "`samples` is not between 1 and {MAX_SAMPLES}"
            )));
        }
        if !(1..=MAX_TEST_SECONDS).contains(&self.test_seconds()) {
            return Err(refused(format!(
                "`test_seconds` is not between 1 and {MAX_TEST_SECONDS}"
            )));
        }
        self.limits.check()?;
        for model in &self.models {
            allowed_model("models", model, settings, allowed)?;
        }
        let prepared = self.prepare(settings)?;
        for instance in &prepared.dataset.instances {
            // The dataset ensures the form OWNER/NAME.
            let (owner, name) = instance.repo.split_once('/').unwrap_or_default();
            let location = self.repositories().replace("{owner}", owner);
            allowed.check(&location.replace("{name}", name))?;
        }
        let instances = prepared.dataset.instances.iter();
        let ids = instances.map(|instance| instance.instance_id.as_str());
        let runs = prepared.plan.cells(ids).len();
        match runs > MAX_RUNS {
            true => Err(refused(format!(
                "the comparison has {runs} runs; the maximum is {MAX_RUNS}"
            ))),
            false => Ok(prepared),
        }
    }

    /// Plans a comparison that was checked before.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the dataset, a model or an approach is invalid, or if the server has custom prompts.
    pub fn prepare(&self, server: &Settings) -> Result<PreparedComparison> {
        let records_of = self.instances.iter().cloned().map(Value::Object).collect();
        let dataset = Dataset::of_records(&self.name, records_of).map_err(records)?;
        let settings = self.settings(server);
        if settings.run.prompts.is_some() {
            return Err(
                refused("the server's setting `run.prompts` names a local folder")
                    .hint("remove it from the server's settings"),
            );
        }
        let models = self.models.iter().map(|name| ModelName::parse(name));
        let request = PlanRequest {
            approaches: self.approaches.clone(),
            models: models.collect::<Result<_>>()?,
            samples: self.samples.unwrap_or(1),
            max_dollars: self.limits.dollars,
            code_patches: None,
            allows_commands: false,
        };
        let (plan, inputs, _) = request.plan(&dataset, &settings)?;
        Ok(PreparedComparison {
            dataset,
            plan,
            inputs,
            settings,
        })
    }

    /// Returns the server's settings with these limits applied.
    fn settings(&self, server: &Settings) -> Settings {
        let mut settings = self.limits.of_each_run().apply(server);
        settings.run.effort = self.effort.or(settings.run.effort);
        settings
    }
}
