//! What a task remembers of the delivery that it comes from.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use testwright_config::error::{Error, Result};

/// For [`crate::store::GitHubTaskKind::Answer`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerDetails {
    /// Of the App, where one sent it.
    pub installation: Option<u64>,
    /// Title and text, as they were when the test was asked for: what is changed later was not seen by who asked.
    pub issue: String,
    pub pull_request: bool,
}

/// For [`crate::store::GitHubTaskKind::Confirm`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmDetails {
    pub installation: Option<u64>,
    pub pull_request: u64,
    /// Commits.
    pub base: String,
    pub head: String,
}

pub fn encode(details: &impl Serialize) -> Result<String> {
    serde_json::to_string(details)
        .map_err(|error| Error::infrastructure("store what GitHub delivered").cause(error))
}

pub fn decode<T: DeserializeOwned>(details: &str) -> Result<T> {
    serde_json::from_str(details)
        .map_err(|error| Error::infrastructure("read what GitHub delivered").cause(error))
}
