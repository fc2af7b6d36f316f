//! The repository and sandbox in which a test is checked or written.

use std::sync::Arc;

use testwright_evals::cases::CaseEnvironment;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;

use crate::artifacts::shared_environments;
use crate::request::{allowed_repository, check_revision};
use crate::sandbox_limits::SandboxPermit;
use crate::state::ApiState;
use testwright_agent::agent::Progress;
use testwright_agent::check::{CheckedTest, TestInput, check_test};
use testwright_agent::issues::{self, Issue};
use testwright_agent::session::Session;
use testwright_agent::setup::{RepositoryLocation, Setup};
use testwright_config::error::Result;

pub(crate) struct SandboxPlace {
    location: RepositoryLocation,
    issue: Option<Issue>,
}

/// An environment in which tests are checked one after the other.
pub(crate) struct CheckEnvironment<'a> {
    setup: Setup<'a>,
    progress: Arc<dyn Progress>,
    source: Source,
    environment: Environment,
    /// Text of the issue.
    issue: String,
    _room: SandboxPermit,
}

impl SandboxPlace {
    pub(crate) async fn resolve(
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
    pub(crate) fn issue_text(&self) -> String {
        self.issue
            .as_ref()
            .map(|issue| issue.text())
            .unwrap_or_default()
    }

    /// Prepares the environment for running cases.
    pub(crate) async fn of_cases(
        &self,
        api: &ApiState,
        progress: Arc<dyn Progress>,
    ) -> Result<CaseEnvironment> {
        let setup = setup(api, progress).await?;
        setup.case_place(&self.location).await
    }

    /// Starts a sandbox. Dropping the future stops whatever was started.
    pub(crate) async fn start(
        &self,
        api: &ApiState,
        progress: Arc<dyn Progress>,
    ) -> Result<(Source, Session)> {
        let setup = setup(api, progress).await?.for_issue(self.issue.as_ref());
        let (source, _, session) = setup.start_session(&self.location, None).await?;
        Ok((source, session))
    }

    /// Waits for a sandbox of the owner's share, then prepares the environment for checking tests. Dropping the future
    /// stops whatever was started.
    pub(crate) async fn prepare_checks<'a>(
        &self,
        api: &'a ApiState,
        owner: &str,
        progress: Arc<dyn Progress>,
    ) -> Result<CheckEnvironment<'a>> {
        let room = api.sandboxes.acquire(owner).await?;
        let setup = setup(api, progress.clone())
            .await?
            .for_issue(self.issue.as_ref());
        let (source, environment, _) = setup.prepare_environment(&self.location, None).await?;
        Ok(CheckEnvironment {
            setup,
            progress,
            source,
            environment,
            issue: self.issue_text(),
            _room: room,
        })
    }
}

impl CheckEnvironment<'_> {
    /// Checks a test in a sandbox of its own. The inner error says why the test cannot be run. Dropping the future
    /// stops the sandbox.
    pub(crate) async fn check(
        &self,
        test: &TestInput,
    ) -> Result<std::result::Result<CheckedTest, String>> {
        let session = self.setup.session_in(&self.environment).await?;
        self.progress.phase("check", "the tests run");
        let checked = check_test(&session, &self.source, &self.issue, test).await;
        let closed = session.close().await;
        let checked = checked?;
        closed?;
        Ok(checked)
    }
}

async fn setup(api: &ApiState, progress: Arc<dyn Progress>) -> Result<Setup<'_>> {
    let settings = &api.settings;
    Setup::new(settings, shared_environments(settings)?, progress).await
}
