//! Runs of a comparison in the store: requesting them, waiting for them, and fetching their results.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use testwright_evals::Instance;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use crate::batch::Batch;
use crate::json::encode;
use crate::store::{ComparisonReport, JobKind, JobStatus, NewComparison, NewRun, StoredRun};
use testwright_agent::agent::Outcome;
use testwright_agent::approaches::{ModelKind, Variant};
use testwright_agent::issues;
use testwright_agent::job::{Record, write_outcome, write_results};
use testwright_agent::trajectory::RunFolder;
use testwright_comparisons::compare::cell_run::CellTask;
use testwright_comparisons::compare::{Plan, PlanLimits, RemoteRuns, RunSpec, System};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Interval for checking whether a run has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The request for a run of a comparison, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRequest {
    /// Instance, approach and model of the run.
    pub task: CellTask,
    /// Settings of the comparison.
    #[serde(flatten)]
    pub shared: CellSettings,
}

/// Settings that all runs of a comparison share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellSettings {
    /// Limits of every run.
    pub limits: PlanLimits,
    /// Template of the repositories' addresses, with `{owner}` and `{name}`.
    pub repositories: String,
    /// Timeout of a test run during grading, in seconds.
    pub test_seconds: u64,
    /// Model settings of the process that started the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSettings>,
}

/// Settings of a model that affect the results of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSettings {
    /// Base URL, without user and password.
    base_url: Option<String>,
    temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    extra_body: Map<String, Value>,
}

impl ModelSettings {
    /// Takes the settings that affect results from those of this process.
    pub fn from_settings(settings: &Settings) -> Self {
        let model = &settings.model;
        ModelSettings {
            base_url: model.base_url.as_ref().map(ToString::to_string),
            temperature: model.temperature,
            seed: model.seed,
            extra_body: model.extra_body.clone(),
        }
    }
}

impl std::fmt::Display for ModelSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base_url = self.base_url.as_deref().unwrap_or("the default address");
        match self.temperature {
            Some(temperature) => write!(f, "{base_url} with the temperature {temperature}")?,
            None => write!(f, "{base_url} with the default temperature")?,
        }
        if let Some(seed) = self.seed {
            write!(f, ", the seed {seed}")?;
        }
        if !self.extra_body.is_empty() {
            let fields = Value::Object(self.extra_body.clone());
            write!(f, ", the fields {fields}")?;
        }
        Ok(())
    }
}

impl CellSettings {
    /// Checks that this worker would query the approach's language model with the settings of the comparison.
    ///
    /// # Errors
    ///
    /// Fails if the approach is unknown, or if the worker's model settings differ from the comparison's.
    pub fn check_model(&self, worker: &Settings, approach: &str) -> Result<()> {
        let kind = Variant::parse(approach)?.approach.model;
        let own = ModelSettings::from_settings(worker);
        match &self.model {
            Some(comparison_settings)
                if kind == ModelKind::Language && *comparison_settings != own =>
            {
                let error =
                    Error::infrastructure("execute the run with the comparison's model settings");
                Err(error
                    .cause(format!(
                        "the worker uses {own}, and the comparison uses {comparison_settings}"
                    ))
                    .hint("use the comparison's [model] settings for the worker"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the worker's settings with the limits of the comparison.
    pub fn settings(&self, worker: &Settings) -> Settings {
        let mut settings = worker.clone();
        let run = &mut settings.run;
        run.max_steps = self.limits.steps;
        run.max_tokens = self.limits.tokens;
        run.max_minutes = self.limits.minutes;
        run.max_dollars = None;
        run.min_confidence = self.limits.min_confidence;
        settings
    }
}

/// Delegates runs to the workers of a store.
pub struct StoreRuns {
    /// The comparison. Its id stays the same when the comparison is resumed.
    pub batch: Batch,
    /// Budget for all runs together, in US dollars.
    pub max_dollars: Option<f64>,
    /// Settings that all runs share.
    pub shared: CellSettings,
}

impl StoreRuns {
    /// Stores the plan of the comparison, so that the server can list the comparison.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn put_plan(&self, plan: &Plan) -> Result<()> {
        let text = encode(plan, "store the comparison")?;
        let new = NewComparison {
            id: &self.batch.id,
            owner: &self.batch.owner,
            name: &plan.dataset,
            plan: &text,
            max_dollars: self.max_dollars,
        };
        self.batch.store.put_comparison(&new).await
    }

    /// Stores the report that was written to a folder.
    ///
    /// # Errors
    ///
    /// Fails if a file of the report cannot be read, or if the database query fails.
    pub async fn put_report(&self, folder: &Path) -> Result<()> {
        let read = |name: &str| {
            let path = folder.join(name);
            plain_file::read_text(&path, Links::Refuse, MAX_DOCUMENT)
                .map_err(|error| Error::io(format!("read {}", path.display()), &error))
        };
        let report = ComparisonReport {
            report: read("report.json")?,
            page: read("report.html")?,
        };
        let batch = &self.batch;
        batch.store.put_comparison_report(&batch.id, &report).await
    }

    /// Returns the run of a cell, and queues it if it has no result.
    async fn ask(&self, cell: &RunSpec, task: CellTask) -> Result<StoredRun> {
        let System {
            approach, model, ..
        } = &cell.system;
        let (title, repository) = (title(&task.instance), task.instance.repo.clone());
        let request = CellRequest {
            task,
            shared: self.shared.clone(),
        };
        let request = encode(&request, "store a run of the comparison")?;
        let new = NewRun {
            request,
            title,
            repository,
            approach: approach.clone(),
            model: model.clone(),
            idempotency_key: Some(format!("{}/{}", self.batch.id, cell.folder().display())),
            owner: self.batch.owner.clone(),
            batch: self.batch.id.to_string(),
            traceparent: self.batch.traceparent.clone(),
        };
        let store = &self.batch.store;
        let (run, _) = store.add_run(&new).await?;
        let may_be_retried = run.status.may_be_retried();
        if may_be_retried && run.request != new.request {
            // The failure may have been caused by the earlier request.
            store.set_request(&run.id, &new.request).await?;
        }
        if may_be_retried {
            store.requeue(JobKind::Run, &run.id).await?;
        }
        Ok(run)
    }

    async fn wait(&self, run: &StoredRun) -> Result<StoredRun> {
        loop {
            // If the database fails, the next check decides.
            match self.batch.store.run(&run.id).await {
                Ok(Some(run)) if run.status.has_ended() => return Ok(run),
                Ok(None) => {
                    let error = Error::infrastructure("wait for a run of the comparison");
                    return Err(error.cause("the run is no longer in the database"));
                }
                Ok(Some(_)) | Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

/// Returns the title of a run in lists: the instance's id and the issue's title.
fn title(instance: &Instance) -> String {
    let id = &instance.instance_id;
    match issues::of_text(&instance.problem_statement, id) {
        Ok(issue) => format!("{id}: {}", issue.title),
        // The run will report the error.
        Err(_) => id.clone(),
    }
}

#[async_trait]
impl RemoteRuns for StoreRuns {
    async fn run(&self, cell: &RunSpec, task: CellTask, out: &Path) -> Result<Outcome> {
        let cancelled = || {
            Err(
                Error::cancelled("the comparison was cancelled on the server")
                    .hint("run the same command again to continue"),
            )
        };
        let Batch { store, id, .. } = &self.batch;
        if store.cancel_late_jobs(id).await? {
            return cancelled();
        }
        let stored_run = self.ask(cell, task).await?;
        // The comparison may have been cancelled before the run was added.
        if store.cancel_late_jobs(id).await? {
            return cancelled();
        }
        let run = self.wait(&stored_run).await?;
        if run.status == JobStatus::Cancelled {
            return cancelled();
        }
        let lines = store.trajectory(&run.id).await?;
        RunFolder::restore(out, &lines)?;
        let record = run.record.as_deref().unwrap_or_default();
        let outcome: Outcome = serde_json::from_str(record).map_err(|_| {
            Error::infrastructure("execute the run")
                .cause(format!("the run is {}", run.status.as_str()))
        })?;
        if lines.is_empty() {
            // The run ended before its first step.
            return Ok(outcome);
        }
        let (folder, _) = RunFolder::reopen(out)?;
        match serde_json::from_str::<Record>(record) {
            Ok(record) => write_results(&folder, &record)?,
            // The record contains only a failure, without results.
            Err(_) => write_outcome(&folder, &outcome)?,
        }
        Ok(outcome)
    }

    async fn dollars(&self) -> Result<Option<f64>> {
        let batch = self.batch.id.as_str();
        let mut dollars = self.batch.store.batch_dollars(&[batch]).await?;
        Ok(dollars.remove(batch))
    }
}

#[cfg(test)]
mod tests;
