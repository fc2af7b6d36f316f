//! Liveness and readiness probes, for servers and workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::machine::MachineHealth;
use super::telemetry::Telemetry;
use crate::store::{QueueState, Store};
use testwright_config::error::{Error, Result};
use testwright_config::stop_signal::StopSignal;

/// Timeout of a probe. Callers give up after a few seconds, so a later answer is useless.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Minimum time between two test writes to the database, regardless of the number of probes.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Time and result of the last test write.
type DatabaseWrite = (Instant, Result<()>);

#[derive(Clone)]
pub struct Probes {
    pub store: Store,
    /// Signals that this process is shutting down.
    pub stop: StopSignal,
    pub telemetry: Arc<Telemetry>,
    machine: Arc<MachineHealth>,
    last_write: Arc<Mutex<Option<DatabaseWrite>>>,
}

impl Probes {
    pub fn new(
        store: Store,
        stop: StopSignal,
        telemetry: Arc<Telemetry>,
        machine: Arc<MachineHealth>,
    ) -> Self {
        Probes {
            store,
            stop,
            telemetry,
            machine,
            last_write: Arc::default(),
        }
    }

    /// Checks that the database responds in time.
    ///
    /// # Errors
    ///
    /// Fails if the query fails or times out.
    pub async fn database_answers(&self) -> Result<()> {
        in_time(self.store.health()).await
    }

    /// Checks that this process can take work: it is not shutting down, its machine lacks nothing, and the database is
    /// up to date and writable.
    ///
    /// # Errors
    ///
    /// Fails if one of these conditions is not met.
    pub async fn ready(&self) -> Result<()> {
        if *self.stop.borrow() {
            return Err(Error::infrastructure("take work").cause("the process is shutting down"));
        }
        if let Some(shortage) = self.machine.shortage() {
            return Err(Error::exhausted(shortage, "take work"));
        }
        in_time(self.store.check_migrations()).await?;
        let mut written = self.last_write.lock().await;
        match &*written {
            Some((at, result)) if at.elapsed() < WRITE_INTERVAL => result.clone(),
            _ => {
                let result = in_time(self.store.check_write()).await;
                *written = Some((Instant::now(), result.clone()));
                result
            }
        }
    }

    /// Returns the state of the queue; `None` if the database does not respond.
    pub async fn queue_state(&self) -> Option<QueueState> {
        let is_paused = self.machine.shortage().is_some();
        self.telemetry.metrics.paused.set(i64::from(is_paused));
        in_time(self.store.queue_state()).await.ok()
    }
}

async fn in_time<T>(probe: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(PROBE_TIMEOUT, probe).await {
        Ok(answer) => answer,
        Err(_) => {
            let seconds = PROBE_TIMEOUT.as_secs();
            let cause = format!("it did not respond within {seconds} seconds");
            Err(Error::unavailable("reach the database").cause(cause))
        }
    }
}
