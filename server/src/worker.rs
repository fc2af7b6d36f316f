//! Executes queued jobs. A run starts from the beginning, or resumes where its trajectory in the store ends.

mod ending;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testwright_sandboxes::Shortage;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;

use ending::{infrastructure_ending, request_ending, status};

use super::attempt::{self, AttemptEnd};
use super::comparison::CellRequest;
use super::grading::work::GradingWork;
use super::harnesses::HarnessCache;
use super::jobs::JobSource;
use super::machine::MachineHealth;
use super::matrix::work::MatrixWork;
use super::prepared_cell::PreparedMatrixRun;
use super::request::RunRequest;
use super::retention::remove_attempt_folder;
use super::run_files::{self, build_log};
use super::store_sink::{LastEvent, StoreSink};
use super::telemetry::{RunObserver, Telemetry};
use crate::artifacts::{Artifacts, shared_environments};
use crate::json::{decode, encode};
use crate::store::{
    Attempt, AttemptResults, BatchBudget, JobId, JobKind, JobStatus, Store, StoreQuota, StoredRun,
};
use testwright_agent::agent::{NotesToLog, Outcome};
use testwright_agent::approaches::extra_inputs::EarlierTest;
use testwright_agent::approaches::{ModelKind, Variant};
use testwright_agent::issues;
use testwright_agent::job::{Record, RecordedRun, RunJob};
use testwright_agent::setup::RepositoryLocation;
use testwright_agent::trajectory::{Event, RunFolder};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::lock::lock;
use testwright_config::settings::Settings;
use testwright_config::stop_signal::{StopSignal, stopped};
use testwright_models::ModelName;
use testwright_models::price::{check_limit, check_price};
use testwright_models::quota::Quota;

/// A worker, which executes runs, matrices and gradings in this process.
pub struct Worker {
    /// Database with the jobs.
    pub store: Store,
    /// Store for the files of runs, if files are kept.
    pub artifacts: Option<Artifacts>,
    /// Settings for all runs.
    pub settings: Settings,
    /// Folder for runs in progress.
    pub folder: PathBuf,
    /// Publishes the ids of runs that have changed.
    pub changes: broadcast::Sender<JobId>,
    /// Signals that this process is shutting down; runs are then returned to the queue.
    pub stop: StopSignal,
    /// Metrics and traces.
    pub telemetry: Arc<Telemetry>,
    /// Harnesses for grading, created when first needed.
    pub harnesses: HarnessCache,
    /// Health of this machine, which decides whether a job returns to the queue after a shortage. If `None`, a shortage
    /// ends the job.
    pub machine: Option<Arc<MachineHealth>>,
}

#[async_trait::async_trait]
impl JobSource for Worker {
    /// Claims the next job, as soon as this machine can run one.
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>> {
        if let Some(machine) = &self.machine
            && !machine.wait_until_healthy(&self.stop).await
        {
            return Ok(None);
        }
        self.store.claim_next(worker).await
    }

    async fn run(&self, attempt: &Attempt) -> Result<()> {
        match attempt.kind {
            JobKind::Run => self.execute_run(attempt).await,
            JobKind::Matrix => {
                let work = MatrixWork {
                    store: &self.store,
                    settings: &self.settings,
                    folder: attempt.folder_in(&self.folder),
                };
                self.complete(attempt, work.process_attempt(attempt)).await
            }
            // `Store::take` claims no other kind.
            JobKind::Grading | JobKind::Comparison | JobKind::GitHubTask => {
                let work = GradingWork {
                    store: &self.store,
                    harnesses: &self.harnesses,
                    folder: attempt.folder_in(&self.folder),
                };
                self.complete(attempt, work.process_attempt(attempt)).await
            }
        }
    }
}

impl Worker {
    /// Returns a failed attempt to the queue if the machine is at fault; `false` if the attempt must end as failed.
    async fn return_if_machine_failed(
        &self,
        attempt: &Attempt,
        shortage: Option<Shortage>,
        message: &str,
    ) -> Result<bool> {
        let Some(machine) = &self.machine else {
            return Ok(false);
        };
        let current_shortage = match machine.check().await {
            Some(shortage) => Some(shortage),
            None => self.check_services().await,
        };
        let Some(shortage) = shortage.or(current_shortage) else {
            return Ok(false);
        };
        machine.begin_pause(shortage);
        let reason = match shortage {
            // The message names the service: the database or the artifact store.
            Shortage::Service => message.to_owned(),
            _ => format!("{shortage} ({message})"),
        };
        let returned = self
            .store
            .return_to_queue(attempt, &reason, current_shortage.is_some())
            .await?;
        if returned {
            self.telemetry
                .metrics
                .work_returned(attempt.kind.name(), shortage);
        }
        Ok(returned)
    }

    /// Returns an attempt to the queue if it failed because of the machine; `false` if it must end.
    async fn return_failed_attempt(&self, attempt: &Attempt, ending: &AttemptEnd) -> Result<bool> {
        match &ending.failure {
            Some(message) => {
                self.return_if_machine_failed(attempt, ending.shortage, message)
                    .await
            }
            None => Ok(false),
        }
    }

    /// Finds a shortage of the database or the artifact store.
    async fn check_services(&self) -> Option<Shortage> {
        if let Err(error) = self.store.check_write().await {
            return error.kind.shortage();
        }
        let checked = self.artifacts.as_ref()?.check().await;
        checked.err()?.kind.shortage()
    }

    fn is_well(&self) {
        if let Some(machine) = &self.machine {
            machine.end_pauses();
        }
    }

    /// Runs a matrix or a grading and stores its end.
    async fn complete(
        &self,
        attempt: &Attempt,
        work: impl Future<Output = Result<AttemptEnd>>,
    ) -> Result<()> {
        let ending = attempt::run_attempt(&self.store, attempt, self.stop.clone(), work).await;
        // The results include the relevant logs.
        remove_attempt_folder(attempt.folder_in(&self.folder)).await;
        if self.return_failed_attempt(attempt, &ending).await? {
            return Ok(());
        }
        if ending.failure.is_none() {
            self.is_well();
        }
        ending.store(&self.store, attempt).await.map(drop)
    }

    async fn execute_run(&self, attempt: &Attempt) -> Result<()> {
        self.notify_change(&attempt.id);
        let run = self.store.run(&attempt.id).await?;
        let run = run.ok_or_else(|| Error::infrastructure("read the run"))?;
        let observer = Arc::new(RunObserver::begin(self.telemetry.clone(), &run));
        let (ending, log) = self.attempt(&run, attempt, observer.clone()).await;
        let ending = match self.return_failed_attempt(attempt, &ending).await? {
            true => None,
            false => self.upload_files(attempt, ending, log.as_deref()).await?,
        };
        let Some(ending) = ending else {
            observer.ended(JobStatus::Queued);
            self.notify_change(&attempt.id);
            return Ok(());
        };
        if ending.failure.is_none() {
            self.is_well();
        }
        if let Some(status) = ending.store(&self.store, attempt).await? {
            observer.ended(status);
        }
        self.notify_change(&attempt.id);
        Ok(())
    }

    /// Uploads the files of a run that has ended. If that fails, the run returns to the queue (`None`) or ends as
    /// `infrastructure`, so that no run has a result without its files.
    async fn upload_files(
        &self,
        attempt: &Attempt,
        ending: AttemptEnd,
        log: Option<&Path>,
    ) -> Result<Option<AttemptEnd>> {
        let artifacts = self.artifacts.as_ref();
        let Some(artifacts) = artifacts.filter(|_| ending.status.has_ended()) else {
            return Ok(Some(ending));
        };
        let folder = attempt.folder_in(&self.folder);
        let uploaded = run_files::upload(&self.store, artifacts, attempt, &folder, log).await;
        let Err(error) = uploaded else {
            return Ok(Some(ending));
        };
        let (run, message) = (attempt.id.as_str(), error.with_cause());
        tracing::warn!(run, error = message, "could not upload the files of a run");
        if self
            .return_if_machine_failed(attempt, error.kind.shortage(), &message)
            .await?
        {
            return Ok(None);
        }
        Ok(Some(match ending.failure {
            Some(_) => ending,
            None => infrastructure_ending(error),
        }))
    }

    fn notify_change(&self, id: &JobId) {
        // send() fails only if there are no receivers.
        let _ = self.changes.send(id.clone());
    }

    /// Returns the end of the attempt and the log of its environment build.
    async fn attempt(
        &self,
        run: &StoredRun,
        attempt: &Attempt,
        observer: Arc<RunObserver>,
    ) -> (AttemptEnd, Option<PathBuf>) {
        let (stop, signal) = watch::channel(false);
        let watching = forward_stop(self.store.clone(), attempt.clone(), self.stop.clone(), stop);
        // Dropping the set stops the watcher.
        let mut watcher = JoinSet::new();
        watcher.spawn(watching);
        let last_event = LastEvent::default();
        let sink = StoreSink {
            store: self.store.clone(),
            run: attempt.id.clone(),
            attempt: attempt.number,
            changes: self.changes.clone(),
            runtime: Handle::current(),
            observer,
            last_event: last_event.clone(),
        };
        let worked = self.execute(run, attempt, signal, sink).await;
        drop(watcher);
        match worked {
            Ok((outcome, record)) if outcome != Outcome::Interrupted => {
                let log = build_log(&record);
                let ending = AttemptEnd {
                    status: status(&outcome),
                    failure: outcome.failure().map(str::to_owned),
                    shortage: outcome.shortage(),
                    results: AttemptResults {
                        patch: outcome.written_patch().map(str::to_owned),
                        explanation: Some(record),
                        last_event: lock(&last_event).take(),
                    },
                };
                (ending, log)
            }
            // A cell of a comparison has no client that could correct it.
            Err(error) if error.kind == Kind::Usage && run.batch.is_empty() => {
                let log = error.log.clone();
                (request_ending(error), log)
            }
            Err(error) if error.kind != Kind::Interrupted => {
                let log = error.log.clone();
                (infrastructure_ending(error), log)
            }
            // The store ends the run if it was cancelled.
            _ => (AttemptEnd::new(JobStatus::Queued), None),
        }
    }

    /// Returns the outcome of the run and its record.
    async fn execute(
        &self,
        run: &StoredRun,
        attempt: &Attempt,
        stop: StopSignal,
        sink: StoreSink,
    ) -> Result<(Outcome, String)> {
        let out = attempt.folder_in(&self.folder);
        let events = self.restore(&run.id, &out).await?;
        let record = match serde_json::from_str::<CellRequest>(&run.request) {
            Ok(cell) => self.execute_cell(run, &cell, out, sink, stop).await?,
            Err(_) => {
                let request: RunRequest = decode(&run.request, "read the request")?;
                let quota = self.quota(run, request.limits.dollars, None);
                let quota = quota.map_err(Error::into_infrastructure)?;
                let mut job = self.job(run, &request, out, events.is_empty()).await?;
                job.shared =
                    shared_environments(&job.settings).map_err(Error::into_infrastructure)?;
                job.sink = Some(Box::new(sink));
                job.stop = Some(stop);
                job.quota = Some(quota);
                run_in_task(job.execute(Arc::new(NotesToLog))).await?.0
            }
        };
        let text = encode(&record, "encode the record")?;
        Ok((record.outcome, text))
    }

    async fn execute_cell(
        &self,
        run: &StoredRun,
        cell: &CellRequest,
        out: PathBuf,
        sink: StoreSink,
        stop: StopSignal,
    ) -> Result<Record> {
        let mut prepared = tokio::select! {
            prepared = PreparedMatrixRun::prepare(&self.harnesses, cell, out) => prepared?,
            () = stopped(stop.clone()) => {
                return Err(Error::cancelled("the run was cancelled"));
            }
        };
        prepared.job.sink = Some(Box::new(sink));
        prepared.job.stop = Some(stop);
        // The budget is read now, because the user may have raised it.
        let comparison = self.store.comparison(&run.batch).await?;
        let budget = comparison.map(|comparison| BatchBudget {
            batch: run.batch.clone(),
            dollars: comparison.max_dollars,
        });
        let quota = self.quota(run, None, budget)?;
        run_in_task(prepared.execute(quota)).await
    }

    /// Returns the quota for model calls of a run. If dollars are limited, by the request or elsewhere, this worker
    /// must know the model's price.
    fn quota(
        &self,
        run: &StoredRun,
        dollars: Option<f64>,
        budget: Option<BatchBudget>,
    ) -> Result<Arc<dyn Quota>> {
        let quota = StoreQuota {
            store: self.store.clone(),
            limits: self.settings.model_limits.clone(),
            budget,
        };
        let model = ModelName::parse(&run.model)?;
        let is_limited = dollars.is_some() || quota.limits_dollars(&model);
        let kind = Variant::parse(&run.approach)?.approach.model;
        if is_limited && kind == ModelKind::Language {
            check_price(&self.settings, &model)
                .map_err(|error| error.doing("enforce the limit in dollars on this worker"))?;
        }
        Ok(Arc::new(quota))
    }

    async fn job(
        &self,
        run: &StoredRun,
        request: &RunRequest,
        out: PathBuf,
        is_new: bool,
    ) -> Result<RunJob> {
        let approach = Variant::parse(&run.approach)?;
        let mut settings = request.settings(&self.settings);
        settings.run.out = Some(out.clone());
        if !is_new {
            let recorded = RecordedRun::open(&out).map_err(Error::into_infrastructure)?;
            return RunJob::resumed(recorded, settings, approach);
        }
        let mut extra_inputs = request.extra_inputs()?;
        if let Some(id) = &request.revises {
            extra_inputs.revises = Some(self.earlier_test(id).await?);
        }
        let options = issues::Options::from_settings(&settings, request.comments);
        let issue = issues::of_url_or_text(&request.issue, &options).await?;
        self.store.set_title(&run.id, &issue.title).await?;
        let model = ModelName::parse(&run.model)?;
        check_limit(&settings, &model).map_err(Error::into_infrastructure)?;
        let place = RepositoryLocation {
            location: run.repository.clone(),
            revision: request.commit.clone(),
        };
        Ok(RunJob {
            extra_inputs,
            notes: issue.notes.clone(),
            ..RunJob::new(settings, issue, place, approach, model, out)
        })
    }

    /// Returns the test of an earlier run.
    async fn earlier_test(&self, id: &str) -> Result<EarlierTest> {
        let run = self.store.run(id).await?;
        let patch = run.and_then(|run| run.patch).ok_or_else(|| {
            Error::usage(format!("revise the test of run {id}"))
                .cause("the run was deleted, or has no test")
        })?;
        let run = id.to_owned();
        Ok(EarlierTest { run, patch })
    }

    /// Writes the trajectory from the store. Events that are only on this disk were not stored before the worker ended.
    async fn restore(&self, id: &JobId, out: &Path) -> Result<Vec<Event>> {
        let lines = self.store.trajectory(id).await?;
        RunFolder::restore(out, &lines)?;
        match lines.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(RunFolder::read(out)?),
        }
    }
}

/// Runs work in a separate task, so that a panic ends the run but not the worker. Dropping the future aborts the task.
async fn run_in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let mut tasks = JoinSet::from_iter([work]);
    match tasks.join_next().await {
        Some(Ok(worked)) => worked,
        Some(Err(error)) => Err(Error::infrastructure("execute the run").cause(error)),
        None => Err(Error::infrastructure("execute the run")),
    }
}

/// Sends the stop signal if the run is cancelled or claimed by another worker, or if this process is shutting down.
async fn forward_stop(
    store: Store,
    attempt: Attempt,
    process: StopSignal,
    stop: watch::Sender<bool>,
) {
    tokio::select! {
        () = stopped(process) => {}
        () = attempt::wait_until_unwanted(&store, &attempt) => {}
    }
    stop.send_replace(true);
    // The sender must live until all receivers have seen the value.
    stop.closed().await;
}
