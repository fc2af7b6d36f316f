//! The heartbeat of this process, and the recovery of orphaned jobs: those that no living process holds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::store::{Attempt, JobId, Store, WorkerProcess, now};
use testwright_config::error::Result;
use testwright_config::lock::lock;
use testwright_config::stop_signal::{StopSignal, stopped};

const INTERVAL: Duration = Duration::from_secs(3);
/// Interval of recovery, longer than [`INTERVAL`]: after a database outage, every living process sends a heartbeat
/// first.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(4);

/// The heartbeat of this process, with the jobs that it holds.
pub struct Heartbeat {
    store: Store,
    process: WorkerProcess,
    held: Mutex<BTreeSet<Attempt>>,
}

impl Heartbeat {
    /// Creates the heartbeat of a new process, with a number of slots for runs, matrices and gradings.
    pub fn new(store: Store, slots: usize) -> Arc<Self> {
        let started_at = now();
        let system = rustix::system::uname();
        let process = WorkerProcess {
            // Process ids alone are not unique: they are reused, and may coincide on different machines.
            name: format!("{}-{}", std::process::id(), JobId::new(started_at)),
            host: system.nodename().to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: i64::try_from(slots).unwrap_or(i64::MAX),
            started_at,
        };
        Arc::new(Heartbeat {
            store,
            process,
            held: Mutex::default(),
        })
    }

    /// Returns the name of this process, unique among all processes.
    pub fn name(&self) -> &str {
        &self.process.name
    }

    /// Holds a job until the value is dropped.
    pub fn hold(self: &Arc<Self>, attempt: &Attempt) -> HeldJob {
        lock(&self.held).insert(attempt.clone());
        HeldJob {
            heartbeat: self.clone(),
            attempt: attempt.clone(),
        }
    }

    /// Sends heartbeats and recovers orphaned jobs until `end`.
    pub async fn run_until(&self, end: StopSignal) {
        tokio::select! {
            () = stopped(end) => {}
            () = self.beat() => {}
            () = self.recover() => {}
        }
        if let Err(error) = self.store.remove_worker(self.name()).await {
            let error = error.with_cause();
            tracing::warn!(error, "could not remove the heartbeat; it will time out");
        }
    }

    async fn beat(&self) {
        loop {
            if let Err(error) = self.store.put_heartbeat(&self.process).await {
                tracing::warn!(error = error.with_cause(), "the heartbeat failed");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn recover(&self) {
        let mut suspects = BTreeSet::new();
        loop {
            tokio::time::sleep(RECOVERY_INTERVAL).await;
            suspects = match self.recover_orphans(&suspects).await {
                Ok(orphans) => orphans,
                Err(error) => {
                    let error = error.with_cause();
                    tracing::warn!(error, "could not check for orphaned jobs");
                    BTreeSet::new()
                }
            };
        }
    }

    /// Queues jobs again that were orphans last time too, and returns the current orphans. One check is not enough: a
    /// process may have missed heartbeats during an outage, and a claim may be stored but not yet held.
    async fn recover_orphans(&self, suspects: &BTreeSet<Attempt>) -> Result<BTreeSet<Attempt>> {
        let orphans = self.store.orphans(self.name()).await?;
        let mut orphans = BTreeSet::from_iter(orphans);
        orphans.retain(|orphan| !lock(&self.held).contains(orphan));
        for orphan in orphans.intersection(suspects) {
            if self.store.return_orphan(orphan).await? {
                let (kind, id) = (orphan.kind.name(), orphan.id.as_str());
                tracing::warn!(kind, id, "a job was orphaned, and left its process");
            }
        }
        Ok(orphans)
    }
}

/// A job that this process runs.
pub struct HeldJob {
    heartbeat: Arc<Heartbeat>,
    attempt: Attempt,
}

impl Drop for HeldJob {
    fn drop(&mut self) {
        lock(&self.heartbeat.held).remove(&self.attempt);
    }
}
