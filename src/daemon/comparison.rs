//! Comparisons whose runs are made by all workers of a database: asked for here, waited for, and brought back with their
//! trajectories.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::queue::Queue;
use super::trajectory_lines::trajectory_lines;
use crate::agent::Outcome;
use crate::compare::cell_run::CellTask;
use crate::compare::{Cell, Plan, PlanLimits, RemoteRuns, System};
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::store::{ComparisonReport, NewComparison, NewRun, RunId, RunStatus, Store, StoredRun};
use crate::trajectory::RunFolder;

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
}

impl CellSettings {
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
    pub store: Store,
    pub queue: Queue,
    pub owner: String,
    /// The comparison: the same whenever it is gone on with.
    pub batch: RunId,
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
            id: &self.batch,
            owner: &self.owner,
            name: &plan.dataset,
            plan: &text,
            max_dollars: self.max_dollars,
        };
        self.store.put_comparison(&new).await
    }

    /// Stores the report that was written into a folder.
    pub async fn put_report(&self, folder: &Path) -> Result<()> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .map_err(|error| Error::io(format!("read {}", path.display()), &error))
        };
        let report = ComparisonReport {
            report: read("report.json")?,
            page: read("report.html")?,
        };
        self.store.put_comparison_report(&self.batch, &report).await
    }

    /// The run of a cell, which waits, goes on, or has a result.
    async fn ask(&self, cell: &Cell, task: CellTask) -> Result<StoredRun> {
        let System {
            approach, model, ..
        } = &cell.system;
        let (title, repository) = (
            task.instance.instance_id.clone(),
            task.instance.repo.clone(),
        );
        let request = CellRequest {
            task,
            shared: self.shared.clone(),
        };
        let request = serde_json::to_string(&request)
            .map_err(|error| Error::infrastructure("store a run of the comparison").cause(error))?;
        let new = NewRun {
            request,
            repository,
            approach: approach.clone(),
            model: model.clone(),
            idempotency_key: Some(format!("{}/{}", self.batch, cell.folder().display())),
            owner: self.owner.clone(),
            batch: self.batch.to_string(),
        };
        let (run, is_new) = self.store.add_run(&new).await?;
        if is_new {
            self.store.set_title(&run.id, &title).await?;
        }
        // Whoever asked before may have ended before it was queued; a ticket too many does no harm.
        if run.status == RunStatus::Queued
            || (run.status.may_be_retried() && self.store.requeue(&run.id).await?)
        {
            self.queue.push_run().await?;
        }
        Ok(run)
    }

    async fn wait(&self, run: &StoredRun) -> Result<StoredRun> {
        loop {
            // A database that does not answer now is asked again.
            match self.store.run(&run.id).await {
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

#[async_trait]
impl RemoteRuns for StoreRuns {
    async fn run(&self, cell: &Cell, task: CellTask, out: &Path) -> Result<Outcome> {
        let cancelled = || {
            Err(
                Error::interrupted("compare: it was cancelled at the daemon")
                    .hint("the same command goes on with what is there"),
            )
        };
        let comparison = self.store.comparison(&self.batch).await?;
        if comparison.is_some_and(|comparison| comparison.is_cancelled) {
            return cancelled();
        }
        let asked = self.ask(cell, task).await?;
        let run = self.wait(&asked).await?;
        if run.status == RunStatus::Cancelled {
            return cancelled();
        }
        let lines = trajectory_lines(&self.store, &run.id).await?;
        RunFolder::restore(out, &lines)?;
        let record = run.record.as_deref().unwrap_or_default();
        serde_json::from_str(record).map_err(|_| {
            Error::infrastructure("make the run").cause(format!("it is {}", run.status.as_str()))
        })
    }
}
