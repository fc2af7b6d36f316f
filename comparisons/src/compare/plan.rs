//! What is compared: `comparison.json`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::{Dataset, Instance};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::{PLAN, encoded};
use testwright_agent::approaches::given;
use testwright_agent::approaches::{ModelKind, Variant};
use testwright_agent::own_prompts;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::ModelName;

/// Of `comparison.json`.
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of this format.
    pub format: u32,
    /// Name of the dataset's file.
    pub dataset: String,
    pub systems: Vec<System>,
    /// At least so many of each system.
    pub samples: u32,
    pub limits: PlanLimits,
    /// Name of the code patches other than the golden ones that systems are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_patches: Option<String>,
    /// Digest of the user's own prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
    pub instances: Vec<PlannedInstance>,
}

/// An approach with a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// With its options.
    pub approach: String,
    pub model: String,
    /// The grader picks among its samples: an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oracle_samples: Option<u32>,
    /// What it is given beyond the issue: its task is an easier one than that of systems with nothing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
}

/// What every run may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanLimits {
    pub steps: u64,
    pub tokens: Option<u64>,
    pub minutes: f64,
    /// A test for which less speaks than this is withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<f64>,
}

/// What the report tells of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedInstance {
    pub id: String,
    /// `owner/name`.
    pub repository: String,
    /// Of the issue, as its tokenizer counts them.
    pub issue_tokens: u64,
    /// What systems are given on it beyond the issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<PlannedGiven>,
}

/// What there is to give on an instance, as far as some system takes it. Each run's trajectory has it in full.
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
pub struct Cell {
    pub instance: String,
    pub system: System,
    /// From 1.
    pub sample: u32,
}

impl System {
    /// An approach that follows rules has a model of its own: it is one system, whatever the models are.
    pub fn all(approaches: &[Variant], models: &[ModelName]) -> Result<Vec<System>> {
        let mut systems: Vec<System> = Vec::new();
        for variant in approaches {
            let samples = variant.approach.oracle_samples();
            let system = |model: &str| System {
                approach: variant.name(),
                model: model.to_owned(),
                oracle_samples: (samples > 1).then_some(samples),
                given: given::labels(variant.options()),
            };
            let found: Vec<System> = match variant.approach.model() {
                ModelKind::Rules(model) => vec![system(model)],
                ModelKind::Language if models.is_empty() => {
                    return Err(Error::usage("compare")
                        .cause(format!(
                            "`{}` needs a model, and none is named",
                            variant.name()
                        ))
                        .hint("name models with --models, or set TESTWRIGHT_MODEL"));
                }
                ModelKind::Language => models.iter().map(|model| system(model.as_str())).collect(),
            };
            for system in found {
                if systems.contains(&system) {
                    return Err(
                        Error::usage("compare").cause(format!("{} is named twice", system.name()))
                    );
                }
                systems.push(system);
            }
        }
        Ok(systems)
    }

    /// As in reports: `otter@gpt-5-mini`, or the name alone where approach and model are one.
    pub fn name(&self) -> String {
        if self.approach == self.model {
            return self.approach.clone();
        }
        format!("{}@{}", self.approach, self.model)
    }

    /// How many samples there are of it.
    pub fn samples(&self, samples: u32) -> u32 {
        samples.max(self.oracle_samples.unwrap_or(1))
    }

    /// The name of the predictions of a sample.
    pub fn prediction_set(&self, sample: u32) -> String {
        match sample {
            1 => self.name(),
            other => format!("{} #{other}", self.name()),
        }
    }
}

impl Cell {
    /// Relative to the folder of the comparison.
    pub fn folder(&self) -> PathBuf {
        let System {
            approach, model, ..
        } = &self.system;
        let mut path = PathBuf::from("runs");
        path.extend([encoded(approach), encoded(model), self.sample.to_string()]);
        path.push(encoded(&self.instance));
        path
    }

    /// For people.
    pub fn name(&self) -> String {
        format!(
            "{}: {}",
            self.instance,
            self.system.prediction_set(self.sample)
        )
    }
}

impl Plan {
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
            prompts: own_prompts::digest(),
            instances: dataset.instances.iter().map(PlannedInstance::of).collect(),
        }
    }

    /// With what its systems are given on each instance.
    pub fn with_given(mut self, of: impl Fn(&str) -> Option<PlannedGiven>) -> Self {
        for instance in &mut self.instances {
            instance.given = of(&instance.id);
        }
        self
    }

    /// The plan of a folder; `None` where there is none.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(PLAN);
        let wrong = |cause: String| {
            Error::usage(format!("read {}", path.display()))
                .cause(cause)
                .hint("name the folder of a comparison, or a new one")
        };
        let bytes = match plain_file::read(&path, Links::Refuse, MAX_DOCUMENT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let plan: Plan = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if plan.format != FORMAT {
            return Err(wrong(format!(
                "its format is {}, and this program knows {FORMAT}",
                plan.format
            )));
        }
        Ok(Some(plan))
    }

    /// Writes it down. One that is there is gone on with: systems, samples and instances may come to it, and none may go.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let failed = || Error::usage(format!("compare into {}", folder.display()));
        // A replay has its plan from the comparison that it plays.
        own_prompts::check_same(self.prompts.as_deref(), failed())?;
        if let Some(earlier) = Plan::read(folder)? {
            self.check_extends(&earlier, folder)?;
        }
        let path = folder.join(PLAN);
        let failed = |error: std::io::Error| Error::io(format!("write {}", path.display()), &error);
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        super::replace(&path, &text).map_err(failed)?;
        Ok(())
    }

    fn check_extends(&self, earlier: &Plan, folder: &Path) -> Result<()> {
        let differs = |what: &str| {
            Err(
                Error::usage(format!("go on with the comparison in {}", folder.display()))
                    .cause(what)
                    .hint("give the same command again, or name another folder with --out"),
            )
        };
        if let Some(gone) = earlier.systems.iter().find(|s| !self.systems.contains(s)) {
            return differs(&format!(
                "it compares {}, which is not asked for",
                gone.name()
            ));
        }
        for instance in &earlier.instances {
            let mut same = self.instances.iter().filter(|i| i.is_same(instance));
            let Some(now) = same.next() else {
                return differs(&format!(
                    "it has the instance {}, which is not asked for",
                    instance.id
                ));
            };
            if !now.gives_as(instance) {
                return differs(&format!(
                    "on {} its systems are given another code patch or other test files",
                    instance.id
                ));
            }
        }
        if earlier.samples > self.samples {
            return differs(&format!("it takes {} samples", earlier.samples));
        }
        if earlier.limits != self.limits {
            return differs("its runs have other limits");
        }
        let failed = Error::usage(format!("go on with the comparison in {}", folder.display()));
        own_prompts::check_same(earlier.prompts.as_deref(), failed)
    }

    /// All runs, those of an instance side by side.
    pub fn cells<'a>(&'a self, instances: impl Iterator<Item = &'a str>) -> Vec<Cell> {
        let mut cells = Vec::new();
        for instance in instances {
            for system in &self.systems {
                for sample in 1..=system.samples(self.samples) {
                    cells.push(Cell {
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
    fn of(instance: &Instance) -> Self {
        PlannedInstance {
            id: instance.instance_id.clone(),
            repository: instance.repo.clone(),
            issue_tokens: testwright_agent::retrieval::tokens::count(&instance.problem_statement)
                as u64,
            given: None,
        }
    }

    /// But for what is given on it.
    fn is_same(&self, other: &PlannedInstance) -> bool {
        let of = |i: &PlannedInstance| (i.id.clone(), i.repository.clone(), i.issue_tokens);
        of(self) == of(other)
    }

    /// What was given before is the same; more may have come to it.
    fn gives_as(&self, earlier: &PlannedInstance) -> bool {
        let Some(earlier) = &earlier.given else {
            return true;
        };
        let now = self.given.clone().unwrap_or_default();
        let is_kept = |now: &Option<String>, was: &Option<String>| was.is_none() || now == was;
        is_kept(&now.golden_patch, &earlier.golden_patch)
            && is_kept(&now.other_patch, &earlier.other_patch)
            && (earlier.test_files.is_empty() || now.test_files == earlier.test_files)
    }
}
