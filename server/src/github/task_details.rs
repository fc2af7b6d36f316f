//! Details of a delivery that its task needs.

use serde::{Deserialize, Serialize};

/// Details of a [`crate::store::GitHubTaskKind::Answer`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AnswerDetails {
    /// Installation of the App that sent the delivery, if an App did.
    pub installation: Option<u64>,
    /// Title and text of the issue at the time of the request: the requester has not seen later changes.
    pub issue: String,
    pub pull_request: bool,
    /// Changes to make in the newest test for the issue, in the requester's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// Details of a [`crate::store::GitHubTaskKind::Confirm`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ConfirmDetails {
    pub installation: Option<u64>,
    pub pull_request: u64,
    /// Commits before and after the pull request.
    pub base: String,
    pub head: String,
}
