//! The end of an attempt at a run.

use crate::attempt::AttemptEnd;
use crate::json::encode;
use crate::store::{AttemptResults, JobStatus};
use serde_json::json;
use testwright_agent::agent::Outcome;
use testwright_config::error::Error;

/// Hint for a request that failed without a hint of its own.
const NEW_REQUEST: &str = "correct the request, and start a new run";

/// Ends a run that failed because of the machine. The last event is not stored, so that a retry can resume the run.
pub(super) fn infrastructure_ending(error: Error) -> AttemptEnd {
    let (shortage, failure) = (error.kind.shortage(), error.with_cause());
    AttemptEnd {
        shortage,
        failure: Some(failure),
        // This replaces the record, in the same format.
        results: AttemptResults {
            explanation: encode(&Outcome::from(error), "encode the record").ok(),
            ..AttemptResults::default()
        },
        ..AttemptEnd::new(JobStatus::Infrastructure)
    }
}

/// Ends a run whose request cannot be fulfilled, such as one for a missing commit. A retry would fail again, so the
/// status allows none.
pub(super) fn request_ending(error: Error) -> AttemptEnd {
    let reason = error.with_cause();
    let hint = error.hint.unwrap_or_else(|| NEW_REQUEST.to_owned());
    // Like a record, but with the hint.
    let record = json!({ "outcome": "nothing", "reason": reason, "hint": hint });
    AttemptEnd {
        results: AttemptResults::explained(record.to_string()),
        ..AttemptEnd::new(JobStatus::Nothing)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn impossible_request_cannot_be_retried() {
        let error = Error::usage("read the repository /srv/a").cause("the folder does not exist");
        let ending = request_ending(error);
        assert!(ending.status.has_ended() && !ending.status.may_be_retried());
        assert!(ending.failure.is_none());
        let record = ending.results.explanation.unwrap();
        let outcome: Outcome = serde_json::from_str(&record).unwrap();
        let reason = "failed to read the repository /srv/a: the folder does not exist";
        let reason = reason.to_owned();
        assert_eq!(outcome, Outcome::Nothing { reason });
        assert!(record.contains(NEW_REQUEST), "{record}");
    }
}
