//! Whether this process lives, and whether it can do its work: for the server and for workers alike.

use std::sync::Arc;
use std::time::Duration;

use super::telemetry::Telemetry;
use crate::error::{Error, Result};
use crate::stop_signal::StopSignal;
use crate::store::{QueueState, Store};

/// Whoever asks gives up soon: an answer after that helps nobody.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub struct Probes {
    pub store: Store,
    /// This process is to end.
    pub stop: StopSignal,
    pub telemetry: Arc<Telemetry>,
}

impl Probes {
    pub async fn database_answers(&self) -> Result<()> {
        in_time(self.store.health()).await
    }

    /// It can take work: it is not about to end, and the database answers and is up to date.
    pub async fn ready(&self) -> Result<()> {
        if *self.stop.borrow() {
            return Err(Error::infrastructure("take work").cause("the process is about to end"));
        }
        in_time(self.store.check_migrations()).await
    }

    /// `None` where the database does not answer.
    pub async fn queue_state(&self) -> Option<QueueState> {
        in_time(self.store.queue_state()).await.ok()
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            let cause = format!("it did not answer within {seconds} seconds");
            Err(Error::unavailable("reach the database").cause(cause))
        }
    }
}
