//! The processors that runs side by side share: a run has one while its tools work, and none while it waits for its model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A run's share; without a limit for a run that is alone.
#[derive(Debug, Default)]
pub struct ProcessorShare {
    all: Option<Arc<Semaphore>>,
    held: Option<OwnedSemaphorePermit>,
}

impl ProcessorShare {
    pub fn of(all: Arc<Semaphore>) -> Self {
        ProcessorShare {
            all: Some(all),
            held: None,
        }
    }

    /// Takes one, and says how long that took.
    pub async fn acquire(&mut self) -> Duration {
        let (Some(all), None) = (&self.all, &self.held) else {
            return Duration::ZERO;
        };
        let asked = Instant::now();
        // Nobody closes it.
        self.held = all.clone().acquire_owned().await.ok();
        asked.elapsed()
    }

    /// Gives it to others; was there one?
    pub fn release(&mut self) -> bool {
        self.held.take().is_some()
    }
}
