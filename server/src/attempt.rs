//! One attempt at a job that is not a run, until its end is stored.

use std::time::Duration;

use testwright_sandboxes::Shortage;

use crate::store::{Attempt, Store, WorkStatus};
use testwright_config::error::{Kind, Result};
use testwright_config::stop_signal::{StopSignal, stopped};

/// How often to check whether the job was cancelled.
const CANCEL_POLL: Duration = Duration::from_secs(1);

/// How an attempt ended.
pub struct Ending {
    status: WorkStatus,
    message: Option<String>,
    shortage: Option<Shortage>,
}

impl Ending {
    fn of(status: WorkStatus) -> Self {
        Ending {
            status,
            message: None,
            shortage: None,
        }
    }

    fn failed(message: String) -> Self {
        Ending {
            message: Some(message),
            ..Ending::of(WorkStatus::Infrastructure)
        }
    }

    /// What failed, if it came to no result.
    pub fn failure(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// What the machine ran out of, if that is the cause.
    pub fn shortage(&self) -> Option<Shortage> {
        self.shortage
    }

    /// With what failed that is nobody's fault.
    pub fn of_failures(failures: Vec<String>) -> Self {
        match failures.into_iter().next() {
            Some(failure) => Ending::failed(failure),
            None => Ending::of(WorkStatus::Done),
        }
    }
}

/// Runs an attempt, unless the job is cancelled, another process claims it, or this process must stop.
pub async fn attempt(
    store: &Store,
    taken: &Attempt,
    stop: StopSignal,
    work: impl Future<Output = Result<Ending>>,
) -> Ending {
    tokio::select! {
        worked = work => worked.unwrap_or_else(|error| match error.kind {
            Kind::Interrupted => Ending::of(WorkStatus::Queued),
            kind => Ending {
                shortage: kind.shortage(),
                ..Ending::failed(error.with_cause())
            },
        }),
        () = unwanted(store, taken) => Ending::of(WorkStatus::Cancelled),
        () = stopped(stop) => Ending::of(WorkStatus::Queued),
    }
}

/// Stores how an attempt ended.
pub async fn end(store: &Store, taken: &Attempt, ending: Ending) -> Result<()> {
    let message = ending.message.as_deref();
    store.end_work(taken, ending.status, message).await
}

/// Returns once the job is cancelled, or belongs to another attempt.
pub async fn unwanted(store: &Store, taken: &Attempt) {
    loop {
        tokio::time::sleep(CANCEL_POLL).await;
        // If the database fails, the next check decides.
        if let Ok(false) = store.is_wanted(taken).await {
            return;
        }
    }
}
