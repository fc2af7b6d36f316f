//! What a process that works on runs tells of itself, every few seconds, so that others can see it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::Result;
use crate::stop_signal::{StopSignal, stopped};
use crate::store::{RunId, Store, StoredWorker, now};

const REFRESH: Duration = Duration::from_secs(3);
/// Milliseconds: who was not seen for so long is dead, as the queue takes it.
pub const DEAD_AFTER: i64 = 15_000;
/// Milliseconds: for so long is a dead worker shown.
const FORGOTTEN_AFTER: i64 = 3_600_000;

pub struct WorkerRegistry {
    store: Store,
    name: String,
    slots: usize,
    started_at: i64,
    runs: Mutex<BTreeSet<RunId>>,
    changed: Notify,
}

impl WorkerRegistry {
    pub fn new(store: Store, name: &str, slots: usize) -> Arc<Self> {
        Arc::new(WorkerRegistry {
            store,
            name: name.to_owned(),
            slots,
            started_at: now(),
            runs: Mutex::default(),
            changed: Notify::new(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs that are worked on at one time.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The run is this process's for as long as the value lives.
    pub fn work_on(self: &Arc<Self>, run: &RunId) -> CurrentRun {
        self.change(|runs| {
            runs.insert(run.clone());
        });
        CurrentRun {
            registry: self.clone(),
            run: run.clone(),
        }
    }

    /// Does something that nobody may begin to work on the run meanwhile; nothing where it is worked on.
    pub fn unless_current<T>(&self, run: &RunId, act: impl FnOnce() -> T) -> Option<T> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        (!runs.contains(run)).then(act)
    }

    /// Those that are worked on now.
    pub fn current(&self) -> BTreeSet<RunId> {
        self.runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<RunId>)) {
        change(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Refreshes what is stored until `end`, then takes it away. A database that does not answer now is told later.
    pub async fn keep(&self, end: StopSignal) {
        if self.slots == 0 {
            return;
        }
        loop {
            if let Err(error) = self.refresh().await {
                tracing::warn!(error = error.with_cause(), "the worker is not registered");
            }
            tokio::select! {
                () = stopped(end.clone()) => break,
                () = self.changed.notified() => {}
                () = tokio::time::sleep(REFRESH) => {}
            }
        }
        // Else it is missed after a while.
        let _ = self.store.remove_worker(&self.name).await;
    }

    async fn refresh(&self) -> Result<()> {
        let last_seen = now();
        self.store
            .put_worker(&StoredWorker {
                name: self.name.clone(),
                host: host(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                slots: i64::try_from(self.slots).unwrap_or(i64::MAX),
                started_at: self.started_at,
                last_seen,
                runs: self.current().into_iter().collect(),
            })
            .await?;
        self.store.forget_workers(last_seen - FORGOTTEN_AFTER).await
    }
}

pub struct CurrentRun {
    registry: Arc<WorkerRegistry>,
    run: RunId,
}

impl Drop for CurrentRun {
    fn drop(&mut self) {
        self.registry.change(|runs| {
            runs.remove(&self.run);
        });
    }
}

fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}
