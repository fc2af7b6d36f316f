//! What a process that works on runs tells of itself, every few seconds, so that others can see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::store::{Attempt, RunId, Store, StoredWorker, WorkKind, now};
use testwright_config::error::Result;
use testwright_config::stop_signal::{StopSignal, stopped};

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
    work: Mutex<BTreeMap<RunId, WorkKind>>,
    changed: Notify,
}

impl WorkerRegistry {
    pub fn new(store: Store, name: &str, slots: usize) -> Arc<Self> {
        Arc::new(WorkerRegistry {
            store,
            name: name.to_owned(),
            slots,
            started_at: now(),
            work: Mutex::default(),
            changed: Notify::new(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much is worked on at one time.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// What was taken is this process's for as long as the value lives.
    pub fn work_on(self: &Arc<Self>, taken: &Attempt) -> CurrentWork {
        self.change(|work| {
            work.insert(taken.id.clone(), taken.kind);
        });
        CurrentWork {
            registry: self.clone(),
            id: taken.id.clone(),
        }
    }

    /// Does something that nobody may begin to work on the run meanwhile; nothing where it is worked on.
    pub fn unless_current<T>(&self, run: &RunId, act: impl FnOnce() -> T) -> Option<T> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        (!work.contains_key(run)).then(act)
    }

    /// What is worked on now: runs, and the rest.
    fn current(&self) -> (Vec<RunId>, Vec<RunId>) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let is_run = |id: &RunId| work[id] == WorkKind::Run;
        work.keys().cloned().partition(is_run)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<RunId, WorkKind>)) {
        change(&mut self.work.lock().unwrap_or_else(PoisonError::into_inner));
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
        let (runs, tasks) = self.current();
        self.store
            .put_worker(&StoredWorker {
                name: self.name.clone(),
                host: host(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                slots: i64::try_from(self.slots).unwrap_or(i64::MAX),
                started_at: self.started_at,
                last_seen,
                runs,
                tasks,
            })
            .await?;
        self.store.forget_workers(last_seen - FORGOTTEN_AFTER).await
    }
}

pub struct CurrentWork {
    registry: Arc<WorkerRegistry>,
    id: RunId,
}

impl Drop for CurrentWork {
    fn drop(&mut self) {
        self.registry.change(|work| {
            work.remove(&self.id);
        });
    }
}

fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}
