//! The repository and sandbox in which a test is checked or written.

use std::sync::Arc;

use testwright_evals::cases::CaseEnvironment;
use testwright_models::price::check_price;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;

use crate::artifacts::shared_environments;
use crate::request::{RunLimits, allowed_model, allowed_repository, check_revision};
use crate::sandbox_limits::SandboxPermit;
use crate::state::ApiState;
use crate::store::StoreQuota;
use testwright_agent::agent::Progress;
use testwright_agent::check::{CheckedTest, TestInput, check_test};
use testwright_agent::gate;
use testwright_agent::issues::{self, Issue};
use testwright_agent::job::{CheckModel, CheckPlace};
use testwright_agent::session::Session;
use testwright_agent::setup::{RepositoryLocation, Setup};
use testwright_config::error::{Error, Result};

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
    place: SandboxPlace,
    /// Model that checks accepted tests, and the issue that it reads.
    model: Option<(CheckModel, Issue)>,
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
        commit.map(check_revision).transpose()?;
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

    /// Opens the model that a client names for checking accepted tests. The limits are for each test.
    async fn open_model(
        &self,
        api: &ApiState,
        name: Option<&str>,
        limits: &RunLimits,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<(CheckModel, Issue)>> {
        limits.check()?;
        let (name, issue) = match (name, &self.issue) {
            (Some(name), Some(issue)) => (name, issue),
            (Some(_), None) => {
                return Err(Error::usage("check a test with a model")
                    .cause("there is no issue")
                    .hint("set `issue`"));
            }
            (None, _) if limits.is_empty() => return Ok(None),
            (None, _) => {
                return Err(Error::usage("read the limits")
                    .cause("they apply to a model, but `model` is not set")
                    .hint("set `model`, or omit `limits`"));
            }
        };
        let settings = limits.apply(&api.settings);
        let name = allowed_model("model", name, &settings, &api.allowed)?;
        let quota = StoreQuota {
            store: api.store.clone(),
            limits: settings.model_limits.clone(),
            budget: None,
        };
        if quota.limits_dollars(&name) {
            check_price(&settings, &name)?;
        }
        let model = CheckModel::open(&settings, name, Some(Arc::new(quota)), progress).await?;
        Ok(Some((model, issue.clone())))
    }

    /// Opens the model, if the client names one, waits for a sandbox of the owner's share, then prepares the environment
    /// for checking tests. Dropping the future stops whatever was started.
    pub(crate) async fn prepare_checks<'a>(
        self,
        api: &'a ApiState,
        owner: &str,
        (model, limits): (Option<&str>, &RunLimits),
        progress: Arc<dyn Progress>,
    ) -> Result<CheckEnvironment<'a>> {
        let model = self
            .open_model(api, model, limits, progress.clone())
            .await?;
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
            place: self,
            model,
            _room: room,
        })
    }
}

impl CheckEnvironment<'_> {
    /// Checks a test in a sandbox of its own, and an accepted one with the model, if there is one. The inner error says
    /// why the test cannot be run. Dropping the future stops the sandbox.
    pub(crate) async fn check(
        &self,
        test: &TestInput,
    ) -> Result<std::result::Result<CheckedTest, String>> {
        let session = self.setup.session_in(&self.environment).await?;
        self.progress.phase("check", "the tests run");
        let checked = check_test(&session, &self.source, &self.place.issue_text(), test).await;
        let closed = session.close().await;
        let mut checked = checked?;
        closed?;
        if let (Some((model, issue)), Ok(checked)) = (&self.model, &mut checked)
            && checked.evidence.accepted
        {
            self.complete(checked, model, issue).await?;
        }
        Ok(checked)
    }

    /// Adds the model's fixes and its review to an accepted test.
    async fn complete(
        &self,
        checked: &mut CheckedTest,
        model: &CheckModel,
        issue: &Issue,
    ) -> Result<()> {
        // The response has the results, so the trajectory is not kept.
        let folder = tempfile::tempdir().map_err(|error| Error::io("create a folder", &error))?;
        let place = CheckPlace {
            location: self.place.location.clone(),
            source: self.source.clone(),
            environment: self.environment.clone(),
            session: self.setup.session_in(&self.environment).await?,
            out: folder.path().join("check"),
        };
        self.progress.phase("check", "the model tries fixes");
        let CheckedTest { text, evidence } = checked;
        let earlier_notes = evidence.notes.len();
        model.complete(evidence, issue, place).await?;
        for fix in &evidence.fixes {
            text.push_str(&format!("\nFix tried: {}", gate::fix_tried(fix)));
        }
        if let Some(review) = &evidence.review {
            text.push_str(&format!("\nReviewer: {}", gate::opinion(review)));
        }
        for note in &evidence.notes[earlier_notes..] {
            text.push_str(&format!("\nNote: {note}."));
        }
        Ok(())
    }
}

async fn setup(api: &ApiState, progress: Arc<dyn Progress>) -> Result<Setup<'_>> {
    let settings = &api.settings;
    Setup::new(settings, shared_environments(settings)?, progress).await
}
