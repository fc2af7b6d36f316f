//! The end of an attempt at a run.

use std::path::PathBuf;

use serde_json::Value;
use testwright_sandboxes::Shortage;

use crate::store::{AttemptResults, RunStatus};
use testwright_agent::agent::Outcome;
use testwright_config::error::{Error, Result};

pub(super) struct Ending {
    pub status: RunStatus,
    pub results: AttemptResults,
    /// Log of the build of its environment.
    pub log: Option<PathBuf>,
    /// What the machine ran out of, if that is the cause.
    pub shortage: Option<Shortage>,
}

impl Ending {
    /// Returns the run to the queue; the store ends it if it was cancelled.
    pub fn given_back() -> Self {
        Ending {
            status: RunStatus::Queued,
            results: AttemptResults::default(),
            log: None,
            shortage: None,
        }
    }

    /// A failure of the machine. No last event is stored, so that a retry can resume the run.
    pub fn failed(error: Error) -> Self {
        Ending {
            status: RunStatus::Infrastructure,
            shortage: error.kind.shortage(),
            log: error.log.clone(),
            results: AttemptResults {
                // In place of a record, in its shape.
                record: encode(&Outcome::of_error(error)).ok(),
                ..AttemptResults::default()
            },
        }
    }

    /// What failed, if it ended as `infrastructure`.
    pub fn failure(&self) -> Option<String> {
        let is_failure = self.status == RunStatus::Infrastructure;
        let record = self.results.record.as_deref().filter(|_| is_failure)?;
        let record: Value = serde_json::from_str(record).unwrap_or_default();
        Some(record["message"].as_str().unwrap_or_default().to_owned())
    }
}

pub(super) fn status(outcome: &Outcome) -> RunStatus {
    match outcome {
        Outcome::Accepted { .. } => RunStatus::Accepted,
        Outcome::Refused { .. } | Outcome::Withheld { .. } => RunStatus::Refused,
        Outcome::Abstained { .. } | Outcome::OutOfBudget { .. } | Outcome::Nothing { .. } => {
            RunStatus::Nothing
        }
        Outcome::ModelFailed { .. } | Outcome::Infrastructure { .. } => RunStatus::Infrastructure,
        Outcome::Interrupted => RunStatus::Queued,
    }
}

pub(super) fn encode(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::infrastructure("encode the record").cause(error))
}
