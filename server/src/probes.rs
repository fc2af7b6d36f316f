//! Whether this process lives, and whether it can do its work: for the server and for workers alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::machine::Machine;
use super::telemetry::Telemetry;
use crate::store::{QueueState, Store};
use testwright_config::error::{Error, Result};
use testwright_config::stop_signal::StopSignal;

/// Whoever asks gives up soon: an answer after that helps nobody.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The database is written no more often than this, however many ask.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// When the database was written, and whether that failed.
type DatabaseWrite = (Instant, Result<()>);

#[derive(Clone)]
pub struct Probes {
    pub store: Store,
    /// This process is to end.
    pub stop: StopSignal,
    pub telemetry: Arc<Telemetry>,
    machine: Arc<Machine>,
    last_write: Arc<Mutex<Option<DatabaseWrite>>>,
}

impl Probes {
    pub fn new(
        store: Store,
        stop: StopSignal,
        telemetry: Arc<Telemetry>,
        machine: Arc<Machine>,
    ) -> Self {
        Probes {
            store,
            stop,
            telemetry,
            machine,
            last_write: Arc::default(),
        }
    }

    pub async fn database_answers(&self) -> Result<()> {
        in_time(self.store.health()).await
    }

    /// It can take work: it is not about to end, its machine lacks nothing, and the database is up to date and can be written.
    pub async fn ready(&self) -> Result<()> {
        if *self.stop.borrow() {
            return Err(Error::infrastructure("take work").cause("the process is about to end"));
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

    /// `None` where the database does not answer.
    pub async fn queue_state(&self) -> Option<QueueState> {
        let is_paused = self.machine.shortage().is_some();
        self.telemetry.metrics.paused.set(i64::from(is_paused));
        in_time(self.store.queue_state()).await.ok()
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(PROBE_TIMEOUT, asked).await {
        Ok(answer) => answer,
        Err(_) => {
            let seconds = PROBE_TIMEOUT.as_secs();
            let cause = format!("it did not answer within {seconds} seconds");
            Err(Error::unavailable("reach the database").cause(cause))
        }
    }
}
