//! Details of a delivery that its task needs.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use testwright_config::error::{Error, Result};

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

pub(super) fn encode(details: &impl Serialize) -> Result<String> {
    serde_json::to_string(details)
        .map_err(|error| Error::infrastructure("store what GitHub delivered").cause(error))
}

pub(super) fn decode<T: DeserializeOwned>(details: &str) -> Result<T> {
    serde_json::from_str(details)
        .map_err(|error| Error::infrastructure("read what GitHub delivered").cause(error))
}
