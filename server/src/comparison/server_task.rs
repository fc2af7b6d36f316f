//! Comparisons that clients ask a server for: it plans them, has the workers make and grade the runs, and reports. All that
//! lasts is in the store, so that another server, or the same one when it is there again, goes on with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use testwright_evals::harness;

use super::files::ComparisonFiles;
use super::request::{ComparisonRequest, PreparedComparison};
use super::{CellSettings, ModelSettings, StoreRuns};
use crate::artifacts::Artifacts;
use crate::artifacts::shared_environments;
use crate::batch::Batch;
use crate::grading::remote::StoreGradings;
use crate::queue::Queue;
use crate::store::{ComparisonClaim, Store, WorkStatus, now};
use testwright_comparisons::compare::report;
use testwright_comparisons::compare::{
    GRADING, REMOTE_RUNS, Schedule, Step, StepListener, Summary,
};
use testwright_comparisons::compare::{RunStatus, prediction_sets, write_predictions};
use testwright_comparisons::grading::{GradingListener, GradingOptions, GradingRun};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Settings;
use testwright_config::stop_signal::{StopSignal, stopped};

/// How often is asked for comparisons that no server has.
const POLL: Duration = Duration::from_secs(1);
/// How often a server says that it still has one.
const RENEWAL: Duration = Duration::from_secs(3);
/// Milliseconds: a server that says nothing for so long is dead.
const LEASE: i64 = 15_000;
/// Before a comparison is tried again that failed because the machine lacks something.
const SHORTAGE_DELAY: Duration = Duration::from_secs(30);
/// Comparisons that a server sees to at one time: others wait.
const AT_ONCE: usize = 4;

pub struct ComparisonServer {
    pub store: Store,
    pub queue: Queue,
    pub settings: Settings,
    /// Where their files are kept.
    pub artifacts: Artifacts,
    /// Where their folders are while they go on.
    pub folder: PathBuf,
}

impl ComparisonServer {
    /// Sees to comparisons until `stop` ends; those that go on then are given back.
    pub async fn serve(&self, stop: StopSignal) {
        let mut going_on = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = stopped(stop.clone()) => break,
                Some(()) = going_on.next() => {}
                () = tokio::time::sleep(POLL), if going_on.len() < AT_ONCE => {
                    match self.store.claim_comparison(now() + LEASE).await {
                        Ok(Some(claim)) => going_on.push(self.see_to(claim, stop.clone())),
                        Ok(None) => {}
                        Err(error) => {
                            tracing::warn!(error = error.with_cause(), "comparisons were not looked for");
                        }
                    }
                }
            }
        }
        while going_on.next().await.is_some() {}
    }

    async fn see_to(&self, claim: ComparisonClaim, stop: StopSignal) {
        tracing::info!(
            id = claim.id.as_str(),
            attempt = claim.attempt,
            "a comparison goes on"
        );
        let folder = self.folder.join(format!("{}.{}", claim.id, claim.attempt));
        let (status, message) = tokio::select! {
            ended = async { ending(self.compare(&claim, &folder).await).await } => ended,
            () = self.lost(&claim) => (WorkStatus::Cancelled, None),
            () = stopped(stop) => (WorkStatus::Queued, None),
        };
        let message = message.as_deref();
        if let Err(error) = self
            .store
            .end_comparison_claim(&claim, status, message)
            .await
        {
            // Whoever finds the claim out of date goes on with it.
            tracing::warn!(
                error = error.with_cause(),
                "the end of a comparison was not stored"
            );
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Keeps the claim, and ends where it is this server's no more.
    async fn lost(&self, claim: &ComparisonClaim) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            // A database that does not answer now is asked again.
            let extended = self.store.extend_comparison_claim(claim, now() + LEASE);
            if let Ok(false) = extended.await {
                return;
            }
        }
    }

    /// From the request to the report; the answer says what was not made.
    async fn compare(&self, claim: &ComparisonClaim, folder: &Path) -> Result<Option<String>> {
        let request: ComparisonRequest = serde_json::from_str(&claim.request)
            .map_err(|error| Error::infrastructure("read what is to be compared").cause(error))?;
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
            queue: self.queue.clone(),
            owner: claim.owner.clone(),
            id: claim.id.clone(),
            traceparent: claim.traceparent.clone(),
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
            max_dollars: claim.max_dollars,
            shared: CellSettings {
                limits: plan.limits.clone(),
                repositories: request.repositories().to_owned(),
                test_seconds: request.test_seconds(),
                model: Some(ModelSettings::of(settings)),
            },
        };
        let (harness, _) = grading.harness().await?;
        let listener: StepListener = Arc::new(|step| {
            if let Step::Note { text } = step {
                tracing::debug!(text, "of a comparison");
            }
        });
        let all = Schedule {
            plan,
            dataset,
            settings,
            harness: &harness,
            folder,
            max_dollars: claim.max_dollars,
            workers: 1,
            runs_at_once: REMOTE_RUNS,
            recording: None,
            inputs,
            remote: Some(&runs),
        };
        let summary = all.work(listener).await?;
        let sets = prediction_sets(plan, &summary.runs);
        write_predictions(folder, &sets)?;
        if summary.interrupted {
            return Err(Error::interrupted("compare: it is to end"));
        }
        let gradings = StoreGradings::new(batch, &grading);
        grading
            .grade(&sets, Vec::new(), Some(&gradings), &NoListener)
            .await?;
        report::write(folder)?;
        runs.put_report(folder).await?;
        let files = ComparisonFiles {
            store: &self.store,
            artifacts: &self.artifacts,
            claim,
        };
        files.keep(folder).await;
        Ok(not_made(&summary))
    }
}

async fn ending(compared: Result<Option<String>>) -> (WorkStatus, Option<String>) {
    match compared {
        Err(error) if error.kind.shortage().is_some() => {
            let message = error.with_cause();
            tracing::warn!(error = message, "a comparison is tried again in a while");
            tokio::time::sleep(SHORTAGE_DELAY).await;
            (WorkStatus::Queued, Some(message))
        }
        Ok(None) => (WorkStatus::Done, None),
        Ok(Some(why)) => (WorkStatus::Infrastructure, Some(why)),
        // This process, or the comparison, is to end: which of both is in the store.
        Err(error) if error.kind == Kind::Interrupted => (WorkStatus::Queued, None),
        Err(error) => (WorkStatus::Infrastructure, Some(error.with_cause())),
    }
}

/// Why there are fewer runs than were asked for.
fn not_made(summary: &Summary) -> Option<String> {
    if let Some((runs, why)) = &summary.not_made {
        return Some(format!("{runs} of the runs were not made: {why}"));
    }
    let failed =
        |run: &&testwright_comparisons::compare::RunRecord| run.status == RunStatus::Infrastructure;
    let mut failed = summary.runs.iter().filter(failed);
    let first = failed.next()?;
    let number = failed.count() + 1;
    Some(format!(
        "{number} of the runs came to no result: {}",
        first.outcome
    ))
}

/// Whoever looks sees it in the store.
struct NoListener;

impl GradingListener for NoListener {
    fn note(&self, _: &str) {}

    fn step(&self, _: &harness::Step) {}
}
