//! The status of a job.

use serde::{Deserialize, Serialize};

use super::queries::text_column;

/// The status of a run, a matrix, a grading, a comparison or a GitHub task.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Waiting for a worker.
    Queued,
    /// A worker runs the job.
    Running,
    /// A run ended with an accepted test.
    Accepted,
    /// A run ended with a test that the gate rejected, or whose evidence is too weak for the request.
    Refused,
    /// A run ended without a test: it reached a limit, or the approach produced no test. Also a run or a matrix whose
    /// request cannot be fulfilled, for example because its commit does not exist.
    Nothing,
    /// A job of another kind ended with its result.
    Done,
    /// The machine, the model service or the address of an issue failed. This says nothing about the approach.
    Infrastructure,
    /// The job was cancelled before it had a result.
    Cancelled,
}

impl JobStatus {
    const ALL: [JobStatus; 8] = [
        JobStatus::Queued,
        JobStatus::Running,
        JobStatus::Accepted,
        JobStatus::Refused,
        JobStatus::Nothing,
        JobStatus::Done,
        JobStatus::Infrastructure,
        JobStatus::Cancelled,
    ];

    /// Returns the statuses that runs can have.
    pub fn of_runs() -> impl Iterator<Item = JobStatus> {
        Self::ALL.into_iter().filter(|s| *s != JobStatus::Done)
    }

    /// Returns the status as it is stored, in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Queued => "queued",
            JobStatus::Running => "running",
            JobStatus::Accepted => "accepted",
            JobStatus::Refused => "refused",
            JobStatus::Nothing => "nothing",
            JobStatus::Done => "done",
            JobStatus::Infrastructure => "infrastructure",
            JobStatus::Cancelled => "cancelled",
        }
    }

    /// Parses a stored status; `None` if it is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns whether the job ended without a result and can be queued again.
    pub fn may_be_retried(self) -> bool {
        matches!(self, JobStatus::Infrastructure | JobStatus::Cancelled)
    }

    /// Returns whether the job has ended, with or without a result.
    pub fn has_ended(self) -> bool {
        !matches!(self, JobStatus::Queued | JobStatus::Running)
    }
}

text_column!(JobStatus, JobStatus::parse);
