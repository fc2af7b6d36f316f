//! An attempt at work that is no run, from its beginning to what the store keeps of it.

use std::time::Duration;

use testwright_sandboxes::Shortage;

use crate::store::{Attempt, Store, WorkStatus};
use testwright_config::error::{Error, Result};
use testwright_config::stop_signal::{StopSignal, stopped};

/// How often is asked whether it is to end.
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

/// Works, unless it is cancelled, another worker has taken it, or this process is to end.
pub async fn attempt(
    store: &Store,
    taken: &Attempt,
    stop: StopSignal,
    work: impl Future<Output = Result<Ending>>,
) -> Ending {
    tokio::select! {
        worked = work => worked.unwrap_or_else(|error| Ending {
            shortage: error.kind.shortage(),
            ..Ending::failed(error.with_cause())
        }),
        () = unwanted(store, taken) => Ending::of(WorkStatus::Cancelled),
        () = stopped(stop) => Ending::of(WorkStatus::Queued),
    }
}

/// Stores how an attempt ended. An error gives it back to the queue.
pub async fn end(store: &Store, taken: &Attempt, ending: Ending) -> Result<()> {
    let is_given_back = store.end_work(taken, ending.status, ending.message.as_deref());
    match is_given_back.await? {
        true => Err(given_back(taken)),
        false => Ok(()),
    }
}

pub fn given_back(taken: &Attempt) -> Error {
    Error::interrupted(format!("end the {}: it is given back", taken.kind.name()))
}

/// Ends when nobody wants the attempt any more.
async fn unwanted(store: &Store, taken: &Attempt) {
    loop {
        tokio::time::sleep(CANCEL_POLL).await;
        // A database that does not answer now is asked again.
        if let Ok(false) = store.is_wanted(taken).await {
            return;
        }
    }
}
