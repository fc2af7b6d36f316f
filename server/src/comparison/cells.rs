//! Runs of a comparison: asked for, waited for, and brought back with all that they leave.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use testwright_evals::Instance;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use crate::batch::Batch;
use crate::store::{ComparisonReport, JobKind, JobStatus, NewComparison, NewRun, StoredRun};
use crate::trajectory_lines::trajectory_lines;
use testwright_agent::agent::Outcome;
use testwright_agent::approaches::{ModelKind, Variant};
use testwright_agent::issues;
use testwright_agent::job::{Record, write_outcome, write_results};
use testwright_agent::trajectory::RunFolder;
use testwright_comparisons::compare::cell_run::CellTask;
use testwright_comparisons::compare::{Cell, Plan, PlanLimits, RemoteRuns, System};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// How often is asked whether a run has ended.
const POLL: Duration = Duration::from_secs(1);

/// What a run of a comparison is asked for, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRequest {
    pub task: CellTask,
    #[serde(flatten)]
    pub shared: CellSettings,
}

/// What all runs of a comparison have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellSettings {
    pub limits: PlanLimits,
    /// Where git comes from: `{owner}` and `{name}` are put in.
    pub repositories: String,
    /// Longest time of a run of tests that takes part in grading.
    pub test_seconds: u64,
    /// How whoever compares would ask its language models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSettings>,
}

/// Settings of a model that would make runs of one system differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSettings {
    /// Without name and password.
    base_url: Option<String>,
    temperature: Option<f64>,
}

impl ModelSettings {
    pub fn of(settings: &Settings) -> Self {
        let model = &settings.model;
        ModelSettings {
            base_url: model.base_url.as_ref().map(ToString::to_string),
            temperature: model.temperature,
        }
    }
}

impl std::fmt::Display for ModelSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base_url = self.base_url.as_deref().unwrap_or("the default address");
        match self.temperature {
            Some(temperature) => write!(f, "{base_url} with the temperature {temperature}"),
            None => write!(f, "{base_url} with no temperature of its own"),
        }
    }
}

impl CellSettings {
    /// Would this worker ask the approach's language model as whoever compares would?
    pub fn check_model(&self, worker: &Settings, approach: &str) -> Result<()> {
        let kind = Variant::parse(approach)?.approach.model();
        let own = ModelSettings::of(worker);
        match &self.model {
            Some(wanted) if kind == ModelKind::Language && *wanted != own => {
                let error = Error::infrastructure("make the run as the others are made");
                Err(error
                    .cause(format!(
                        "the worker asks the model at {own}, and the comparison is made at {wanted}"
                    ))
                    .hint("give the worker the [model] settings of whoever compares"))
            }
            _ => Ok(()),
        }
    }

    /// A worker's own, with the limits of the comparison.
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

/// Has runs made by the workers of a store.
pub struct StoreRuns {
    /// The comparison: the same whenever it is gone on with.
    pub batch: Batch,
    /// Of all runs together.
    pub max_dollars: Option<f64>,
    pub shared: CellSettings,
}

impl StoreRuns {
    /// Says what is compared, for whoever looks at the server.
    pub async fn put_plan(&self, plan: &Plan) -> Result<()> {
        let text = serde_json::to_string(plan)
            .map_err(|error| Error::infrastructure("store the comparison").cause(error))?;
        let new = NewComparison {
            id: &self.batch.id,
            owner: &self.batch.owner,
            name: &plan.dataset,
            plan: &text,
            max_dollars: self.max_dollars,
        };
        self.batch.store.put_comparison(&new).await
    }

    /// Stores the report that was written into a folder.
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

    /// The run of a cell, which waits, goes on, or has a result.
    async fn ask(&self, cell: &Cell, task: CellTask) -> Result<StoredRun> {
        let System {
            approach, model, ..
        } = &cell.system;
        let (title, repository) = (title(&task.instance), task.instance.repo.clone());
        let request = CellRequest {
            task,
            shared: self.shared.clone(),
        };
        let request = serde_json::to_string(&request)
            .map_err(|error| Error::infrastructure("store a run of the comparison").cause(error))?;
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
            // What was wrong may have been what was asked for.
            store.set_request(&run.id, &new.request).await?;
        }
        if may_be_retried {
            store.requeue(JobKind::Run, &run.id).await?;
        }
        Ok(run)
    }

    async fn wait(&self, run: &StoredRun) -> Result<StoredRun> {
        loop {
            // A database that does not answer now is asked again.
            match self.batch.store.run(&run.id).await {
                Ok(Some(run)) if run.status.has_ended() => return Ok(run),
                Ok(None) => {
                    let error = Error::infrastructure("wait for a run of the comparison");
                    return Err(error.cause("it is not in the database any more"));
                }
                Ok(Some(_)) | Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }
}

/// What its run is called in lists: the instance's id, and the title of its issue.
fn title(instance: &Instance) -> String {
    let id = &instance.instance_id;
    match issues::of_text(&instance.problem_statement, id) {
        Ok(issue) => format!("{id}: {}", issue.title),
        // The run will say what is wrong with it.
        Err(_) => id.clone(),
    }
}

#[async_trait]
impl RemoteRuns for StoreRuns {
    async fn run(&self, cell: &Cell, task: CellTask, out: &Path) -> Result<Outcome> {
        let cancelled = || {
            Err(
                Error::interrupted("compare: it was cancelled at the daemon")
                    .hint("the same command goes on with what is there"),
            )
        };
        let comparison = self.batch.store.comparison(&self.batch.id).await?;
        if comparison.is_some_and(|comparison| comparison.is_cancelled) {
            return cancelled();
        }
        let asked = self.ask(cell, task).await?;
        let run = self.wait(&asked).await?;
        if run.status == JobStatus::Cancelled {
            return cancelled();
        }
        let lines = trajectory_lines(&self.batch.store, &run.id).await?;
        RunFolder::restore(out, &lines)?;
        let record = run.record.as_deref().unwrap_or_default();
        let outcome: Outcome = serde_json::from_str(record).map_err(|_| {
            Error::infrastructure("make the run").cause(format!("it is {}", run.status.as_str()))
        })?;
        if lines.is_empty() {
            // It ended before its first step.
            return Ok(outcome);
        }
        let (folder, _) = RunFolder::reopen(out)?;
        match serde_json::from_str::<Record>(record) {
            Ok(record) => write_results(&folder, &record)?,
            // A failure on the way to its end.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_run_is_called_by_its_instance_and_its_issue() {
        let called = |statement: &str| {
            let instance = serde_json::json!({
                "instance_id": "o__n-1", "repo": "o/n", "base_commit": "a", "problem_statement": statement,
            });
            title(&serde_json::from_value(instance).unwrap())
        };
        assert_eq!(called("# It fails\n\nAlways."), "o__n-1: It fails");
        assert_eq!(called("It fails\nAlways."), "o__n-1: It fails");
        assert_eq!(called(""), "o__n-1");
    }
}
