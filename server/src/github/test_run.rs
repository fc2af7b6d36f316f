//! Runs tests on a commit of a repository, in a sandbox.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use testwright_sandboxes::repository::{self, FileKind, Files, Source, Tree};
use testwright_tools::config::RunnerKind;
use testwright_tools::outcomes::report::TestReport;
use testwright_tools::tool::Tool as _;
use testwright_tools::tools::RunPytest;

use super::GitHub;
use crate::artifacts::shared_environments;
use crate::request::RunRequest;
use crate::store::StoredRun;
use testwright_agent::agent::NotesToLog;
use testwright_agent::issues::{self, Issue};
use testwright_agent::session::{Contents, Session};
use testwright_agent::setup::{RepositoryLocation, Setup};
use testwright_config::error::{Error, Result};

/// Time for a response beyond the timeout of the tests.
const RESPONSE_GRACE: Duration = Duration::from_secs(60);

/// The code of a commit in a sandbox.
pub(super) struct CodeUnderTest {
    source: Source,
    session: Session,
    deadline: Duration,
}

impl CodeUnderTest {
    /// Checks out a commit of `OWNER/NAME` in a sandbox, for the issue of a run. The server must allow the repository.
    pub(super) async fn start(
        github: &GitHub,
        repository: &str,
        commit: &str,
        run: &StoredRun,
    ) -> Result<Self> {
        let settings = &github.api.settings;
        let location = github.settings.clone_url(repository);
        github.api.allowed.check(&location)?;
        let place = RepositoryLocation {
            location,
            revision: Some(commit.to_owned()),
        };
        let setup = Setup::new(
            settings,
            shared_environments(settings)?,
            Arc::new(NotesToLog),
        )
        .await?;
        let issue = issue_of(run);
        let setup = setup.for_issue(issue.as_ref());
        let (source, _, session) = setup.start_session(&place, None).await?;
        let deadline = Duration::from_secs(settings.limits.test_seconds) + RESPONSE_GRACE;
        Ok(CodeUnderTest {
            source,
            session,
            deadline,
        })
    }

    /// Applies a test patch and returns the changed files; the inner error says why it does not apply.
    pub(super) async fn apply(&self, patch: &str) -> Result<std::result::Result<Files, String>> {
        let patch = patch.to_owned();
        let applied = self.read(move |tree| {
            let applied = repository::apply(tree, &Files::new(), &patch)?;
            Ok(applied.map(|applied| applied.files))
        });
        let applied = applied.await?;
        Ok(applied.and_then(|files| {
            let is_link = |file: &Option<repository::File>| {
                file.as_ref().is_some_and(|f| f.kind == FileKind::Link)
            };
            match files.values().any(is_link) {
                true => Err("it creates a symbolic link".to_owned()),
                false => Ok(files),
            }
        }))
    }

    /// Returns the current files at these paths.
    pub(super) async fn files(&self, paths: Vec<String>) -> Result<Files> {
        self.read(move |tree| {
            let mut files = Files::new();
            for path in paths {
                let file = tree.file(&path)?;
                files.insert(path, file);
            }
            Ok(files)
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> std::result::Result<T, testwright_sandboxes::SandboxError>
        + Send
        + 'static,
    ) -> Result<T> {
        let source = self.source.clone();
        let read = tokio::task::spawn_blocking(move || work(&source.tree()?)).await;
        let read =
            read.map_err(|error| Error::infrastructure("read the repository").cause(error))?;
        Ok(read?)
    }

    /// Runs tests (node ids or files) with these files in place.
    pub(super) async fn run(&self, files: &Files, tests: &[String]) -> Result<TestReport> {
        let contents: Contents = files
            .iter()
            .map(|(path, file)| {
                let content = file.as_ref().map(|f| BASE64_STANDARD.encode(&f.content));
                (path.clone(), content)
            })
            .collect();
        self.session.restore(&contents).await?;
        let arguments = json!({ "tests": tests });
        let answer = self.session.call(RunPytest::NAME, arguments, self.deadline);
        let answer = answer.await?;
        if answer.refused || answer.ended {
            return Err(Error::infrastructure("run the tests").cause(answer.text));
        }
        serde_json::from_value(answer.data)
            .map_err(|error| Error::infrastructure("read the report of the tests").cause(error))
    }

    /// Returns the test runner of the repository.
    pub(super) fn runner(&self) -> RunnerKind {
        let kind = &self.session.environment().recipe.runner.kind;
        RunnerKind::named(kind).unwrap_or_default()
    }

    pub(super) async fn close(self) -> Result<()> {
        Ok(self.session.close().await?)
    }
}

/// Returns the issue of a run, with which its test was written.
fn issue_of(run: &StoredRun) -> Option<Issue> {
    let request: RunRequest = serde_json::from_str(&run.request).ok()?;
    issues::of_text(&request.issue, "request").ok()
}
