//! Sharing of processors between concurrent runs. A run holds one while its tools work, but not while it
//! waits for the model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A run's share of the processors; unlimited for a run that is alone.
#[derive(Debug, Default)]
pub struct CpuPermit {
    all: Option<Arc<Semaphore>>,
    held: Option<OwnedSemaphorePermit>,
}

impl CpuPermit {
    /// Creates a share of these processors, one per permit. No processor is held yet.
    pub fn new(all: Arc<Semaphore>) -> Self {
        CpuPermit {
            all: Some(all),
            held: None,
        }
    }

    /// Acquires a processor, and returns the time spent waiting.
    pub async fn acquire(&mut self) -> Duration {
        let (Some(all), None) = (&self.all, &self.held) else {
            return Duration::ZERO;
        };
        let wait_start = Instant::now();
        // acquire_owned() fails only if the semaphore is closed, which never happens.
        self.held = all.clone().acquire_owned().await.ok();
        wait_start.elapsed()
    }

    /// Releases the processor; returns whether one was held.
    pub fn release(&mut self) -> bool {
        self.held.take().is_some()
    }
}
