//! The plan of a comparison, stored in `comparison.json`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::folder::pretty_json;
use testwright_evals::{Dataset, Instance};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::{PLAN, encoded};
use crate::record_file::write_file;
use testwright_agent::approaches::extra_inputs;
use testwright_agent::approaches::{ModelKind, Variant, report_name};
use testwright_agent::custom_prompts;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::ModelName;
use testwright_tools::tools::count;

/// Format version of `comparison.json`.
const FORMAT: u32 = 1;

/// The plan of a comparison: content of `comparison.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of this format.
    pub format: u32,
    /// File name of the dataset.
    pub dataset: String,
    /// Compared systems, in display order.
    pub systems: Vec<System>,
    /// Number of samples of each system. A system with `oracle_samples` takes at least that many.
    pub samples: u32,
    /// Limits of each run.
    pub limits: PlanLimits,
    /// Name of the code patches that systems are given in place of the golden ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_patches: Option<String>,
    /// Digest of the user's custom prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
    /// Instances of the dataset, in its order.
    pub instances: Vec<PlannedInstance>,
}

/// An approach with a model.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct System {
    /// The approach, with its options.
    pub approach: String,
    /// The model, as named in the settings.
    pub model: String,
    /// Number of samples among which the grader picks the best: an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oracle_samples: Option<u32>,
    /// Extra inputs in addition to the issue. They make the task easier, so results are not comparable with systems
    /// without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_inputs: Vec<String>,
    /// SHA-256 of a file of predictions, in hex, if the system is given by them: it has no runs, and both its approach
    /// and its model are its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictions: Option<String>,
}

/// Limits of every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanLimits {
    /// Maximum steps of a run: model calls without reviews.
    pub steps: u64,
    /// Maximum tokens of a run, prompts and completions together; `None` means no limit.
    pub tokens: Option<u64>,
    /// Maximum minutes of a run, not counting the environment build.
    pub minutes: f64,
    /// Minimum confidence; tests below it are withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<f64>,
}

/// Facts about an instance for the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedInstance {
    /// Id of the instance in the dataset (`instance_id`).
    pub id: String,
    /// Repository as `owner/name`.
    pub repository: String,
    /// Length of the issue in tokens, counted by testwright's tokenizer.
    pub issue_tokens: u64,
    /// Extra inputs that systems are given in addition to the issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_inputs: Option<PlannedGiven>,
}

/// Extra inputs for an instance, limited to those that some system uses. The full inputs are in each run's trajectory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedGiven {
    /// SHA-256 of the golden code patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden_patch: Option<String>,
    /// SHA-256 of the other code patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_patch: Option<String>,
    /// Paths of the test files to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_files: Vec<String>,
}

/// A run of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunSpec {
    /// Id of the instance (`instance_id`).
    pub instance: String,
    /// The approach and the model of the run.
    pub system: System,
    /// Sample number, starting at 1.
    pub sample: u32,
}

impl System {
    /// Combines approaches and models. A rule-based approach has its own model, so it is a single system whatever the
    /// models are.
    ///
    /// # Errors
    ///
    /// Fails if a model is needed but missing, or a system occurs twice.
    pub fn all(approaches: &[Variant], models: &[ModelName]) -> Result<Vec<System>> {
        let mut systems: Vec<System> = Vec::new();
        for variant in approaches {
            let samples = variant.approach.oracle_samples;
            let system = |model: &str| System {
                approach: variant.name(),
                model: model.to_owned(),
                oracle_samples: (samples > 1).then_some(samples),
                extra_inputs: extra_inputs::labels(variant.options()),
                predictions: None,
            };
            let variant_systems: Vec<System> = match variant.approach.model {
                ModelKind::Rules(model) => vec![system(model)],
                ModelKind::Language if models.is_empty() => {
                    return Err(Error::usage("compare")
                        .cause(format!(
                            "`{}` needs a model, but no model is set",
                            variant.name()
                        ))
                        .hint("choose models with --models, or set TESTWRIGHT_MODEL"));
                }
                ModelKind::Language => models.iter().map(|model| system(model.as_str())).collect(),
            };
            for system in variant_systems {
                if systems.iter().any(|other| other.name() == system.name()) {
                    return Err(Error::usage("compare")
                        .cause(format!("{} is named twice", system.name()))
                        .hint("name each approach and each model once"));
                }
                systems.push(system);
            }
        }
        Ok(systems)
    }

    /// Returns a system that is given by its predictions. `sha256` is the digest of their file.
    pub fn of_predictions(name: &str, sha256: &str) -> System {
        System {
            approach: name.to_owned(),
            model: name.to_owned(),
            predictions: Some(sha256.to_owned()),
            ..System::default()
        }
    }

    /// Returns whether the system has runs; otherwise it is given by its predictions.
    pub fn has_runs(&self) -> bool {
        self.predictions.is_none()
    }

    /// Returns the name used in reports: `otter@gpt-5-mini`, or only one name if approach and model have the same.
    /// A named program has its name instead of its command line.
    pub fn name(&self) -> String {
        let approach = report_name(&self.approach);
        if approach == self.model {
            return approach.to_owned();
        }
        format!("{approach}@{}", self.model)
    }

    /// Returns how this system differs from an earlier one of the same name, as a clause.
    fn difference(&self, earlier: &System) -> String {
        let name = self.name();
        match (&self.predictions, &earlier.predictions) {
            (Some(_), Some(_)) => format!("the file with the predictions of {name} has changed"),
            (None, None) if self.approach != earlier.approach => format!(
                "{name} was `{}`, and this command requests `{}`",
                earlier.approach, self.approach
            ),
            (None, None) => format!("{name} gets other inputs or has other samples"),
            _ => format!("{name} now names another system"),
        }
    }

    /// Returns the number of samples of the system.
    pub fn samples(&self, samples: u32) -> u32 {
        match self.has_runs() {
            true => samples.max(self.oracle_samples.unwrap_or(1)),
            false => 1,
        }
    }

    /// Returns the name of the prediction set of a sample.
    pub fn prediction_set(&self, sample: u32) -> String {
        match sample {
            1 => self.name(),
            other => format!("{}.sample-{other}", self.name()),
        }
    }
}

impl RunSpec {
    /// Returns the run's folder, relative to the folder of the comparison.
    pub fn folder(&self) -> PathBuf {
        let System {
            approach, model, ..
        } = &self.system;
        let mut path = PathBuf::from("runs");
        path.extend([encoded(approach), encoded(model), self.sample.to_string()]);
        path.push(encoded(&self.instance));
        path
    }

    /// Returns a display name.
    pub fn name(&self) -> String {
        format!(
            "{}: {}",
            self.instance,
            self.system.prediction_set(self.sample)
        )
    }
}

impl Plan {
    /// Returns a plan for these systems on all instances of a dataset, with limits from the settings and no extra
    /// inputs.
    pub fn new(dataset: &Dataset, systems: Vec<System>, samples: u32, settings: &Settings) -> Self {
        let name = dataset.path.file_name().unwrap_or_default();
        Plan {
            format: FORMAT,
            dataset: name.to_string_lossy().into_owned(),
            systems,
            samples,
            limits: PlanLimits {
                steps: settings.run.max_steps,
                tokens: settings.run.max_tokens,
                minutes: settings.run.max_minutes,
                min_confidence: settings.run.min_confidence,
            },
            code_patches: None,
            prompts: custom_prompts::digest(),
            instances: dataset
                .instances
                .iter()
                .map(PlannedInstance::from_instance)
                .collect(),
        }
    }

    /// Adds the extra inputs of each instance.
    pub fn with_given(mut self, of: impl Fn(&str) -> Option<PlannedGiven>) -> Self {
        for instance in &mut self.instances {
            instance.extra_inputs = of(&instance.id);
        }
        self
    }

    /// Reads the plan of a folder; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not a valid plan, or has another format version.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(PLAN);
        let wrong = |cause: String| {
            Error::usage(format!("read {}", path.display()))
                .cause(cause)
                .hint("pass the folder of a comparison, or a new folder")
        };
        let bytes = match plain_file::read(&path, Links::Refuse, MAX_DOCUMENT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let plan: Plan = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if plan.format != FORMAT {
            return Err(wrong(format!(
                "the format {} is not supported; this program supports {FORMAT}",
                plan.format
            )));
        }
        Ok(Some(plan))
    }

    /// Checks that the comparison can be made in this folder, as [`Plan::write`] does.
    ///
    /// # Errors
    ///
    /// Fails if the prompts differ, or the plan does not extend an existing one.
    pub fn check_folder(&self, folder: &Path) -> Result<()> {
        let failed = Error::usage(format!("compare into {}", folder.display()));
        // The plan of a replay comes from the recorded comparison.
        custom_prompts::check_same(self.prompts.as_deref(), failed)?;
        match Plan::read(folder)? {
            Some(earlier) => self.check_extends(&earlier, folder),
            None => Ok(()),
        }
    }

    /// Writes the plan. An existing plan may be extended with systems, samples and instances, but nothing may be
    /// removed.
    ///
    /// # Errors
    ///
    /// Fails if the prompts differ, the plan does not extend the existing one, or the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.check_folder(folder)?;
        let text = pretty_json(self)
            .map_err(|error| Error::infrastructure("encode the plan").cause(error))?;
        write_file(&folder.join(PLAN), &text)
    }

    fn check_extends(&self, earlier: &Plan, folder: &Path) -> Result<()> {
        let differs = |what: &str| {
            Err(
                Error::usage(format!("resume the comparison in {}", folder.display()))
                    .cause(what)
                    .hint("run the same command again, or use another folder with --out"),
            )
        };
        if let Some(removed_system) = earlier.systems.iter().find(|s| !self.systems.contains(s)) {
            let name = removed_system.name();
            if let Some(now) = self.systems.iter().find(|system| system.name() == name) {
                return differs(&now.difference(removed_system));
            }
            return differs(&format!(
                "it includes {name}, which this command does not request"
            ));
        }
        for instance in &earlier.instances {
            let mut same = self.instances.iter().filter(|i| i.is_same(instance));
            let Some(now) = same.next() else {
                return differs(&format!(
                    "it includes the instance {}, which this command does not request",
                    instance.id
                ));
            };
            if !now.extends_inputs(instance) {
                return differs(&format!(
                    "its systems get another code patch or other test files for {}",
                    instance.id
                ));
            }
        }
        if earlier.samples > self.samples {
            return differs(&format!("it takes {}", count(earlier.samples, "sample")));
        }
        if earlier.limits != self.limits {
            return differs("its runs have different limits");
        }
        let failed = Error::usage(format!("resume the comparison in {}", folder.display()));
        custom_prompts::check_same(earlier.prompts.as_deref(), failed)
    }

    /// Returns all runs, grouped by instance.
    pub fn cells<'a>(&'a self, instances: impl Iterator<Item = &'a str>) -> Vec<RunSpec> {
        let mut cells = Vec::new();
        for instance in instances {
            for system in self.systems.iter().filter(|system| system.has_runs()) {
                for sample in 1..=system.samples(self.samples) {
                    cells.push(RunSpec {
                        instance: instance.to_owned(),
                        system: system.clone(),
                        sample,
                    });
                }
            }
        }
        cells
    }
}

impl PlannedInstance {
    fn from_instance(instance: &Instance) -> Self {
        PlannedInstance {
            id: instance.instance_id.clone(),
            repository: instance.repo.clone(),
            issue_tokens: testwright_agent::retrieval::tokens::count(&instance.problem_statement)
                as u64,
            extra_inputs: None,
        }
    }

    /// Returns whether the instances are equal, ignoring extra inputs.
    fn is_same(&self, other: &PlannedInstance) -> bool {
        (&self.id, &self.repository, self.issue_tokens)
            == (&other.id, &other.repository, other.issue_tokens)
    }

    /// Returns whether all earlier inputs are unchanged; inputs may be added.
    fn extends_inputs(&self, earlier: &PlannedInstance) -> bool {
        let Some(earlier) = &earlier.extra_inputs else {
            return true;
        };
        let now = self.extra_inputs.clone().unwrap_or_default();
        let is_compatible =
            |now: &Option<String>, was: &Option<String>| was.is_none() || now == was;
        is_compatible(&now.golden_patch, &earlier.golden_patch)
            && is_compatible(&now.other_patch, &earlier.other_patch)
            && (earlier.test_files.is_empty() || now.test_files == earlier.test_files)
    }
}

#[cfg(test)]
mod tests;
