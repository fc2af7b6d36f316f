//! The job loop of a process: it claims jobs in the store and runs them, a limited number at a time.
//!
//! Only the [`Store`] records which job is next, which process holds it, and how it ended. A claimed job belongs to its
//! process until its end is stored, or until [`crate::heartbeat`] finds it orphaned.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::heartbeat::Heartbeat;
use crate::store::{Attempt, Store};
use testwright_config::error::Result;
use testwright_config::stop_signal::{StopSignal, stopped};

/// Interval at which a process with free slots checks for jobs that other processes added. Jobs that it adds wake it.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay after a database error.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Jobs that a process can claim and run.
#[async_trait::async_trait]
pub trait JobSource: Send + Sync + 'static {
    /// Claims the next job for a worker; `None` if none is due.
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>>;

    /// Runs a job, and stores how it ended.
    async fn run(&self, attempt: &Attempt) -> Result<()>;
}

/// Runs jobs until `stop`, then waits for those that are running.
pub async fn run_jobs(
    store: &Store,
    source: Arc<dyn JobSource>,
    heartbeat: &Arc<Heartbeat>,
    slots: usize,
    stop: StopSignal,
) {
    let mut added = store.added_jobs();
    let mut running = JoinSet::new();
    while !*stop.borrow() {
        let mut pause = POLL_INTERVAL;
        let has_slot = running.len() < slots;
        if has_slot {
            match source.claim(heartbeat.name()).await {
                Ok(Some(attempt)) => {
                    running.spawn(run_job(source.clone(), heartbeat.clone(), attempt));
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(error = error.with_cause(), "could not claim a job");
                    pause = RETRY_DELAY;
                }
            }
        }
        tokio::select! {
            () = stopped(stop.clone()) => {}
            Some(ended) = running.join_next() => log_panic(ended),
            _ = added.changed(), if has_slot => {}
            () = tokio::time::sleep(pause), if has_slot => {}
        }
    }
    while let Some(ended) = running.join_next().await {
        log_panic(ended);
    }
}

async fn run_job(source: Arc<dyn JobSource>, heartbeat: Arc<Heartbeat>, attempt: Attempt) {
    let _held = heartbeat.hold(&attempt);
    if let Err(error) = source.run(&attempt).await {
        tracing::warn!(
            kind = attempt.kind.name(),
            id = attempt.id.as_str(),
            error = error.with_cause(),
            "could not store the end of a job; the job returns to the queue"
        );
    }
}

/// Logs a panic. The job becomes an orphan, and recovery queues it again.
fn log_panic(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a job panicked");
    }
}
