//! One attempt at a job, until its end is stored.

use std::time::Duration;

use testwright_sandboxes::Shortage;

use crate::store::{Attempt, AttemptResults, JobStatus, Store};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::stop_signal::{StopSignal, stopped};

/// Interval for checking whether the job was cancelled.
const CANCEL_POLL: Duration = Duration::from_secs(1);

/// The end of an attempt.
pub struct AttemptEnd {
    pub status: JobStatus,
    pub results: AttemptResults,
    /// Reason of the failure, if the status is `infrastructure`.
    pub failure: Option<String>,
    /// The resource that ran out, if that is the cause.
    pub shortage: Option<Shortage>,
}

impl AttemptEnd {
    pub fn new(status: JobStatus) -> Self {
        AttemptEnd {
            status,
            results: AttemptResults::default(),
            failure: None,
            shortage: None,
        }
    }

    fn failed(message: String) -> Self {
        AttemptEnd {
            results: AttemptResults::explained(&message),
            failure: Some(message),
            ..AttemptEnd::new(JobStatus::Infrastructure)
        }
    }

    /// Ends a job whose request cannot be fulfilled, such as one for a missing commit. A retry would fail again, so the
    /// status allows none.
    pub(crate) fn of_request(error: &Error) -> Self {
        let mut text = error.with_cause();
        if let Some(hint) = &error.hint {
            text.push_str(&format!("; {hint}"));
        }
        AttemptEnd {
            results: AttemptResults::explained(text),
            ..AttemptEnd::new(JobStatus::Nothing)
        }
    }

    /// Ends a job that ran to completion: done, or failed with the first failure of the machine.
    pub fn of_failures(failures: Vec<String>) -> Self {
        match failures.into_iter().next() {
            Some(failure) => AttemptEnd::failed(failure),
            None => AttemptEnd::new(JobStatus::Done),
        }
    }

    /// Stores the end of an attempt and returns the resulting status of the job.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn store(self, store: &Store, attempt: &Attempt) -> Result<Option<JobStatus>> {
        store.end_attempt(attempt, self.status, self.results).await
    }
}

/// Runs an attempt, unless the job is cancelled, another process claims it, or this process must stop.
pub(crate) async fn run_attempt(
    store: &Store,
    attempt: &Attempt,
    stop: StopSignal,
    work: impl Future<Output = Result<AttemptEnd>>,
) -> AttemptEnd {
    tokio::select! {
        worked = work => worked.unwrap_or_else(|error| match error.kind {
            Kind::Interrupted => AttemptEnd::new(JobStatus::Queued),
            kind => AttemptEnd {
                shortage: kind.shortage(),
                ..AttemptEnd::failed(error.with_cause())
            },
        }),
        () = wait_until_unwanted(store, attempt) => AttemptEnd::new(JobStatus::Cancelled),
        () = stopped(stop) => AttemptEnd::new(JobStatus::Queued),
    }
}

/// Returns once the job is cancelled, or belongs to another attempt.
pub(crate) async fn wait_until_unwanted(store: &Store, attempt: &Attempt) {
    loop {
        tokio::time::sleep(CANCEL_POLL).await;
        // If the database fails, the next check decides.
        if let Ok(false) = store.is_wanted(attempt).await {
            return;
        }
    }
}
