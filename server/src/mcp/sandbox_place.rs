//! The repository and sandbox in which a test is checked or written.

use std::sync::Arc;

use testwright_evals::cases::CaseEnvironment;
use testwright_sandboxes::repository::Source;

use super::progress::CallProgress;
use crate::api::ApiState;
use crate::artifacts::shared_environments;
use crate::request::{allowed_repository, check_revision};
use testwright_agent::issues::{self, Issue};
use testwright_agent::session::Session;
use testwright_agent::setup::{RepositoryLocation, Setup};
use testwright_config::error::Result;

pub(super) struct SandboxPlace {
    location: RepositoryLocation,
    issue: Option<Issue>,
}

impl SandboxPlace {
    pub(super) async fn resolve(
        api: &ApiState,
        repository: Option<&str>,
        commit: Option<&str>,
        issue: Option<&str>,
    ) -> Result<Self> {
        let location = allowed_repository(issue, repository, &api.settings, &api.allowed)?;
        if let Some(commit) = commit {
            check_revision(commit)?;
        }
        let options = issues::Options::from_settings(&api.settings, false);
        let issue = match issue {
            Some(issue) => Some(issues::of_url_or_text(issue, &options).await?),
            None => None,
        };
        Ok(SandboxPlace {
            location: RepositoryLocation {
                location,
                revision: commit.map(str::to_owned),
            },
            issue,
        })
    }

    /// Returns the text of the issue. The gate reads it to find names that do not exist yet.
    pub(super) fn issue_text(&self) -> String {
        self.issue
            .as_ref()
            .map(|issue| issue.text())
            .unwrap_or_default()
    }

    /// Prepares the environment for running cases.
    pub(super) async fn of_cases(
        &self,
        api: &ApiState,
        progress: &CallProgress,
    ) -> Result<CaseEnvironment> {
        let setup = setup(api, progress).await?;
        setup.case_place(&self.location).await
    }

    /// Starts a sandbox. Dropping the future stops whatever was started.
    pub(super) async fn start(
        &self,
        api: &ApiState,
        progress: &CallProgress,
    ) -> Result<(Source, Session)> {
        let setup = setup(api, progress).await?.for_issue(self.issue.as_ref());
        let (source, _, session) = setup.start_session(&self.location, None).await?;
        Ok((source, session))
    }
}

async fn setup<'a>(api: &'a ApiState, progress: &CallProgress) -> Result<Setup<'a>> {
    let settings = &api.settings;
    let shared = shared_environments(settings)?;
    Setup::new(settings, shared, Arc::new(progress.clone())).await
}
