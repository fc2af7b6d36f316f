//! Comparisons that clients request from a server. The server plans a comparison, delegates runs and gradings to
//! workers, and writes the report. All lasting state is in the store, so that any server can resume the comparison.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testwright_evals::harness;

use super::files;
use super::request::{ComparisonRequest, PreparedComparison};
use super::{CellSettings, ModelSettings, StoreRuns};
use crate::artifacts::Artifacts;
use crate::artifacts::shared_environments;
use crate::attempt::{self, AttemptEnd};
use crate::batch::Batch;
use crate::grading::remote::StoreGradings;
use crate::jobs::JobSource;
use crate::json::decode;
use crate::retention::remove_attempt_folder;
use crate::store::{Attempt, Store};
use testwright_comparisons::compare::report;
use testwright_comparisons::compare::{
    GRADING, REMOTE_RUNS, Schedule, Step, StepListener, Summary,
};
use testwright_comparisons::compare::{RunStatus, prediction_sets, write_predictions};
use testwright_comparisons::grading::{GradingListener, GradingOptions, GradingRun};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_config::stop_signal::StopSignal;
use testwright_tools::tools::count;

/// Maximum concurrent comparisons of a server.
pub const SLOTS: usize = 4;

/// The part of a server that executes comparisons of clients.
#[derive(Clone)]
pub struct ComparisonServer {
    /// Database with the comparisons and their jobs.
    pub store: Store,
    /// Settings of the server.
    pub settings: Settings,
    /// Store for the files of comparisons.
    pub artifacts: Artifacts,
    /// Folder for comparisons in progress.
    pub folder: PathBuf,
    /// Signals that this process must stop, and return its comparisons to the queue.
    pub stop: StopSignal,
}

#[async_trait::async_trait]
impl JobSource for ComparisonServer {
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>> {
        self.store.claim_comparison(worker).await
    }

    async fn run(&self, attempt: &Attempt) -> Result<()> {
        // Reading files and writing reports would block other tasks.
        let (server, attempt) = (self.clone(), attempt.clone());
        let runtime = tokio::runtime::Handle::current();
        let run = tokio::task::spawn_blocking(move || runtime.block_on(server.run_one(&attempt)));
        run.await
            .map_err(|error| Error::infrastructure("run the comparison").cause(error))?
    }
}

impl ComparisonServer {
    async fn run_one(&self, attempt: &Attempt) -> Result<()> {
        let folder = attempt.folder_in(&self.folder);
        let compare = self.compare(attempt, &folder);
        let ending = attempt::run_attempt(&self.store, attempt, self.stop.clone(), compare).await;
        remove_attempt_folder(folder).await;
        // The comparison may have been dropped between two jobs that it added.
        self.store.cancel_late_jobs(&attempt.id).await?;
        match &ending.failure {
            Some(message) if ending.shortage.is_some() => {
                tracing::warn!(
                    error = message,
                    "a comparison failed, and will be retried later"
                );
                let returned = self.store.return_to_queue(attempt, message, true);
                returned.await.map(drop)
            }
            _ => ending.store(&self.store, attempt).await.map(drop),
        }
    }

    /// Runs a comparison from the request to the report.
    async fn compare(&self, attempt: &Attempt, folder: &Path) -> Result<AttemptEnd> {
        let comparison = self.store.comparison(&attempt.id).await?;
        let comparison = comparison.ok_or_else(|| {
            Error::infrastructure("read the comparison").cause("the comparison was removed")
        })?;
        let text = comparison.request.as_deref().unwrap_or_default();
        let request: ComparisonRequest = decode(text, "read the request")?;
        let prepared = request.prepare(&self.settings)?;
        let PreparedComparison {
            dataset,
            plan,
            inputs,
            settings,
        } = &prepared;
        plan.write(folder)?;
        let batch = Batch {
            store: self.store.clone(),
            owner: comparison.owner,
            id: attempt.id.clone(),
            traceparent: comparison.traceparent,
        };
        let grading = GradingRun {
            options: GradingOptions {
                repositories: request.repositories().to_owned(),
                test_seconds: request.test_seconds(),
                workers: None,
            },
            whole: dataset.clone(),
            dataset: dataset.clone(),
            out: folder.join(GRADING),
            shared: shared_environments(settings)?,
            settings: settings.clone(),
        };
        let runs = StoreRuns {
            batch: batch.clone(),
            max_dollars: comparison.max_dollars,
            shared: CellSettings {
                limits: plan.limits.clone(),
                repositories: request.repositories().to_owned(),
                test_seconds: request.test_seconds(),
                model: Some(ModelSettings::from_settings(settings)),
            },
        };
        let (harness, _) = grading.harness().await?;
        let listener: StepListener = Arc::new(|step| {
            if let Step::Note { text } = step {
                tracing::debug!(text, "a note of a comparison");
            }
        });
        let all = Schedule {
            plan,
            dataset,
            settings,
            harness: &harness,
            folder,
            max_dollars: comparison.max_dollars,
            workers: 1,
            runs_at_once: REMOTE_RUNS,
            recording: None,
            inputs,
            remote: Some(&runs),
            allows_commands: false,
        };
        let summary = all.run_plan(listener).await?;
        let sets = prediction_sets(plan, &summary.runs);
        write_predictions(folder, &sets)?;
        if summary.interrupted {
            return Err(Error::cancelled("the comparison was cancelled"));
        }
        let gradings = StoreGradings::new(batch, &grading);
        grading
            .grade(&sets, Vec::new(), Some(&gradings), &NoListener)
            .await?;
        report::write(folder)?;
        runs.put_report(folder).await?;
        files::upload(&self.store, &self.artifacts, attempt, folder).await;
        Ok(AttemptEnd::of_failures(
            missing_runs_message(&summary).into_iter().collect(),
        ))
    }
}

/// Returns why there are fewer runs than requested.
fn missing_runs_message(summary: &Summary) -> Option<String> {
    if let Some((runs, why)) = &summary.skipped_runs {
        return Some(format!("{} not started: {why}", count(*runs, "run")));
    }
    let failed =
        |run: &&testwright_comparisons::compare::RunRecord| run.status == RunStatus::Infrastructure;
    let mut failed = summary.runs.iter().filter(failed);
    let first = failed.next()?;
    let number = failed.count() + 1;
    Some(format!(
        "{} without a result: {}",
        count(number, "run"),
        first.outcome
    ))
}

/// Ignores progress, because clients see it in the store.
struct NoListener;

impl GradingListener for NoListener {
    fn note(&self, _: &str) {}

    fn step(&self, _: &harness::Step) {}
}
