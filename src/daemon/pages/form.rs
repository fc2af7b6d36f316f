//! The form of a new run.

use serde::{Deserialize, Serialize};

use crate::daemon::request::{RunLimits, RunRequest};

/// An empty field is one that was not filled in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewRunForm {
    issue: String,
    repository: String,
    commit: String,
    approach: String,
    model: String,
}

impl NewRunForm {
    pub fn request(&self) -> RunRequest {
        let filled = |field: &str| {
            let field = field.trim();
            (!field.is_empty()).then(|| field.to_owned())
        };
        RunRequest {
            issue: self.issue.replace("\r\n", "\n"),
            repository: filled(&self.repository),
            commit: filled(&self.commit),
            approach: filled(&self.approach),
            model: filled(&self.model),
            limits: RunLimits::default(),
        }
    }
}
