//! The result of one submission, as stored in the trajectory.

use serde::{Deserialize, Serialize};
use testwright_tools::tools::submission::Submission;

use crate::gate::{FixTrial, Review, Verdict};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SubmissionRecord {
    pub submission: Submission,
    pub verdict: Verdict,
    /// Effects of the last forms of the candidate fixes on these tests.
    #[serde(default)]
    pub fixes: Vec<FixTrial>,
    pub review: Option<Review>,
    /// Whether a candidate fix was requested instead of accepting.
    pub requested_fix: bool,
    /// Whether the reviewer's doubts were sent back instead of accepting.
    pub returned_doubts: bool,
    #[serde(default)]
    pub reason: Option<String>,
    /// Digest of the submitted changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<String>,
}

impl SubmissionRecord {
    pub(super) fn is_final(&self) -> bool {
        self.verdict.accepted() && !self.requested_fix && !self.returned_doubts
    }
}
