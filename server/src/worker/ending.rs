//! The end of an attempt at a run.

use crate::attempt::AttemptEnd;
use crate::store::{AttemptResults, JobStatus};
use testwright_agent::agent::Outcome;
use testwright_config::error::{Error, Result};

/// Ends a run that failed because of the machine. The last event is not stored, so that a retry can resume the run.
pub(super) fn infrastructure_ending(error: Error) -> AttemptEnd {
    let (shortage, failure) = (error.kind.shortage(), error.with_cause());
    AttemptEnd {
        shortage,
        failure: Some(failure),
        // This replaces the record, in the same format.
        results: AttemptResults {
            explanation: encode(&Outcome::of_error(error)).ok(),
            ..AttemptResults::default()
        },
        ..AttemptEnd::new(JobStatus::Infrastructure)
    }
}

pub(super) fn status(outcome: &Outcome) -> JobStatus {
    match outcome {
        Outcome::Accepted { .. } => JobStatus::Accepted,
        Outcome::Refused { .. } | Outcome::Withheld { .. } => JobStatus::Refused,
        Outcome::Abstained { .. } | Outcome::OutOfBudget { .. } | Outcome::Nothing { .. } => {
            JobStatus::Nothing
        }
        Outcome::ModelFailed { .. } | Outcome::Infrastructure { .. } => JobStatus::Infrastructure,
        Outcome::Interrupted => JobStatus::Queued,
    }
}

pub(super) fn encode(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::infrastructure("encode the record").cause(error))
}
