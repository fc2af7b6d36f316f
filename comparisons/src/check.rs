//! Checks predictions with the gate's evidence. Golden patches are neither needed nor read.

use std::path::{Path, PathBuf};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::Instance;
use testwright_evals::clover::problem::sha256;
use testwright_evals::folder;
use testwright_evals::harness::Harness;
use testwright_evals::predictions::{Prediction, Predictions};
use testwright_evals::result::Infrastructure;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;
use tokio::sync::OnceCell;

use crate::grading::GradingRun;
use crate::record_file::{Record, RecordFile, write_file};
use testwright_agent::check::{CheckEvidence, TestInput, gather_evidence};
use testwright_agent::issues;
use testwright_agent::job::{CheckModel, CheckPlace};
use testwright_agent::session::{Session, SessionSettings};
use testwright_agent::setup::{RepositoryLocation, or_interrupted};
use testwright_config::error::{Error, Result};

/// Name of the file with the results.
pub const CHECKS_FILE: &str = "checks.jsonl";
/// Name of the file with the predictions that have the minimum probability.
pub const KEPT_FILE: &str = "kept.jsonl";

/// A checked prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRecord {
    /// Id of the instance.
    pub instance_id: String,
    /// Name of the prediction set (`model_name_or_path`).
    pub prediction: String,
    /// SHA-256 of the patch, the issue, the base commit, the model with its limits and custom prompts, and the version of
    /// the tools, in hex. If it is the same, a prediction is not checked again.
    pub sha256: String,
    /// Verdict and evidence; `None` if the machine failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<CheckEvidence>,
    /// Failure of the machine, if any. The prediction is then checked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure: Option<Infrastructure>,
}

impl Record for CheckRecord {
    type Key = (String, String);
    const WHAT: &'static str = "a checked prediction";

    fn key(&self) -> Self::Key {
        (self.instance_id.clone(), self.prediction.clone())
    }
}

/// Displays progress.
pub trait CheckListener: Send + Sync {
    /// Displays a note for the user.
    fn note(&self, text: &str);
    /// Displays a result; `fresh` is false for one of an earlier run.
    fn checked(&self, record: &CheckRecord, fresh: bool);
}

/// An instance without golden patches, and the patches to check on it.
struct Job<'a> {
    instance: Instance,
    patches: Vec<(&'a Prediction, &'a str)>,
}

/// Services that all jobs use.
struct Checker<'a> {
    run: &'a GradingRun,
    model: Option<&'a CheckModel>,
    harness: Harness,
    session: SessionSettings,
    file: RecordFile<CheckRecord>,
    listener: &'a dyn CheckListener,
}

/// Returns the number of predictions with a patch.
pub fn count_patches(run: &GradingRun, sets: &[Predictions]) -> usize {
    jobs(run, sets).iter().map(|job| job.patches.len()).sum()
}

/// Checks all predictions that have a patch, and returns the results, sorted by instance. The model, if there is one,
/// tries fixes on each accepted test and reviews it. Results go to
/// [`CHECKS_FILE`] in the results folder; those already in it are reused.
///
/// # Errors
///
/// Fails if the harness cannot start, the file cannot be written, or an interrupt arrives. A failure in one instance is
/// part of its results.
pub async fn check_predictions(
    run: &GradingRun,
    model: Option<&CheckModel>,
    sets: &[Predictions],
    listener: &dyn CheckListener,
) -> Result<Vec<CheckRecord>> {
    let path = run.out.join(CHECKS_FILE);
    let file = RecordFile::open(path.clone())?;
    let (harness, notes) = run.harness().await?;
    let workers = run.workers();
    let notes = run.settings.notes.iter().chain(&notes);
    notes
        .chain(&workers.note)
        .for_each(|note| listener.note(note));
    let checker = Checker {
        run,
        model,
        session: SessionSettings {
            limits: run.settings.limits.sandbox(),
            test_seconds: run.options.test_seconds,
            // Leave the other processors to other instances.
            processors: Some(1),
            run: harness.purpose.clone(),
            wanted: None,
        },
        harness,
        file,
        listener,
    };
    let jobs = jobs(run, sets);
    let checks = stream::iter(jobs.iter().map(|job| checker.check(job)));
    let checks = checks
        .buffer_unordered(workers.number)
        .try_collect::<Vec<_>>();
    let records = or_interrupted(&*checker.harness.backend, checks).await?;
    // Earlier results of the same predictions are dropped, and those of other instances are kept.
    let keys = RecordFile::<CheckRecord>::read(&path)?.into_keys();
    checker.file.retain(keys)?;
    let mut records = records.concat();
    records.sort_by_key(Record::key);
    Ok(records)
}

/// Writes the predictions that are accepted and have at least the minimum probability to [`KEPT_FILE`], in the format of
/// predictions.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn write_kept(
    out: &Path,
    sets: &[Predictions],
    checked: &[CheckRecord],
    minimum: f64,
) -> Result<()> {
    let kept = checked.iter().filter_map(|record| {
        let evidence = record.evidence.as_ref();
        evidence.filter(|evidence| evidence.is_kept(Some(minimum)))?;
        sets.iter().find_map(|set| {
            let prediction = set.by_instance.get(&record.instance_id)?;
            (prediction.model_name_or_path == record.prediction).then_some(prediction)
        })
    });
    let text = folder::json_lines(kept);
    let text = text.map_err(|error| Error::infrastructure("encode predictions").cause(error))?;
    write_file(&out.join(KEPT_FILE), &text)
}

/// Returns a folder that does not exist yet: an interrupted check, another model or an equal patch may have left one.
fn free_folder(parent: &Path, name: &str) -> PathBuf {
    let mut folder = parent.join(name);
    let mut number = 2;
    while folder.exists() {
        folder = parent.join(format!("{name}-{number}"));
        number += 1;
    }
    folder
}

fn jobs<'a>(run: &GradingRun, sets: &'a [Predictions]) -> Vec<Job<'a>> {
    let jobs = run.dataset.instances.iter().map(|instance| {
        let id = &instance.instance_id;
        let predictions = sets.iter().filter_map(|set| set.by_instance.get(id));
        Job {
            instance: Instance {
                patch: None,
                test_patch: None,
                ..instance.clone()
            },
            patches: predictions
                .filter_map(|prediction| Some((prediction, prediction.model_patch.as_deref()?)))
                .collect(),
        }
    });
    jobs.filter(|job| !job.patches.is_empty()).collect()
}

impl Checker<'_> {
    /// Checks all patches for an instance. The code is only prepared if a patch was not checked before.
    async fn check(&self, job: &Job<'_>) -> Result<Vec<CheckRecord>> {
        let mut records = Vec::new();
        let code = OnceCell::new();
        for (prediction, patch) in &job.patches {
            let mut record = CheckRecord {
                instance_id: job.instance.instance_id.clone(),
                prediction: prediction.model_name_or_path.clone(),
                sha256: sha256(
                    &[
                        testwright_tools::DIGEST,
                        &job.instance.base_commit,
                        &job.instance.problem_statement,
                        &self.model.map_or_else(String::new, CheckModel::key),
                        patch,
                    ]
                    .join("\0"),
                ),
                evidence: None,
                infrastructure: None,
            };
            let earlier = self.file.get(&record.key());
            let earlier = earlier
                .filter(|earlier| earlier.evidence.is_some() && earlier.sha256 == record.sha256);
            if let Some(earlier) = earlier {
                self.listener.checked(&earlier, false);
                records.push(earlier);
                continue;
            }
            let prepare = async || self.harness.old_code(&job.instance, &|_| {}).await;
            match code.get_or_init(prepare).await {
                Ok(code) => match self.evidence(&job.instance, code, patch).await {
                    Ok(evidence) => record.evidence = Some(evidence),
                    Err(error) => {
                        let mut failure = Infrastructure::new("check", error.with_cause());
                        failure.shortage = error.kind.shortage();
                        record.infrastructure = Some(failure);
                    }
                },
                Err(failure) => record.infrastructure = Some((**failure).clone()),
            }
            self.file.add(record.clone())?;
            self.listener.checked(&record, true);
            records.push(record);
        }
        Ok(records)
    }

    async fn evidence(
        &self,
        instance: &Instance,
        (source, environment): &(Source, Environment),
        patch: &str,
    ) -> Result<CheckEvidence> {
        let issue = issues::of_text(&instance.problem_statement, &instance.instance_id)?;
        let backend = self.harness.backend.clone();
        let session = Session::start(backend, environment, &self.session).await?;
        let input = TestInput::Patch(patch.to_owned());
        let evidence = gather_evidence(&session, source, &issue.text(), &input).await;
        let closed = session.close().await;
        let mut evidence = evidence?;
        closed?;
        if let Some(model) = self.model
            && evidence.accepted
        {
            let name = format!("{}-{}", instance.instance_id, &sha256(patch)[..12]);
            let place = CheckPlace {
                location: RepositoryLocation {
                    location: instance.repo.clone(),
                    revision: Some(instance.base_commit.clone()),
                },
                source: source.clone(),
                environment: environment.clone(),
                session: Session::start(self.harness.backend.clone(), environment, &self.session)
                    .await?,
                out: free_folder(&self.run.out.join("runs"), &name),
            };
            model.complete(&mut evidence, &issue, place).await?;
        }
        Ok(evidence)
    }
}
