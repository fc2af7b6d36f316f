//! `check_test`: the gate's verdict on a test that the client provides.

use rmcp::model::{CallToolResult, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sandbox_place::SandboxPlace;
use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool, answer};
use crate::fields::check_path;
use testwright_agent::check::{CheckEvidence, TestInput, check_test};
use testwright_config::error::Error;

pub(super) struct CheckTest;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckArgs {
    /// Repository: a URL, or a folder on the server. Required unless the issue is a URL. The server must allow it.
    repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: HEAD.
    commit: Option<String>,
    /// Issue, which is read if the test uses a name that does not exist yet: URL of a GitHub issue, or a line with its
    /// title, then its text.
    issue: Option<String>,
    /// Test, as a patch for `git apply` on the old code.
    patch: Option<String>,
    /// Path of the test file in the repository, existing or new; instead of a patch.
    path: Option<String>,
    /// Full content of the test file, together with `path`.
    content: Option<String>,
}

#[async_trait::async_trait]
impl ServiceTool for CheckTest {
    fn name(&self) -> &'static str {
        "check_test"
    }

    fn tool(&self) -> Tool {
        Tool::new(
            self.name(),
            "Runs a given test on the old code of a Python repository and checks whether it reproduces an issue: it changes only \
                        test files, fails for a sound reason, fails again under other conditions, and runs code of the repository. \
                        Reports all problems.",
            serde_json::Map::new(),
        )
        .with_input_schema::<CheckArgs>()
        .with_output_schema::<CheckEvidence>()
        .with_title("Check a test")
        .with_annotations(Effects::READS.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let args: CheckArgs = call.arguments()?;
        let test_input = read_test(&args)?;
        let parts = call.parts;
        let place = SandboxPlace::resolve(
            &parts.api,
            args.repository.as_deref(),
            args.commit.as_deref(),
            args.issue.as_deref(),
        )
        .await?;
        let owner = call.caller().owner;
        let _room = tokio::select! {
            room = parts.sessions.acquire_sandbox(&owner) => room?,
            () = call.cancelled() => return Err(CallError::cancelled()),
        };
        let (source, session) = tokio::select! {
            started = place.start(&parts.api, &call.progress) => started?,
            () = call.cancelled() => return Err(CallError::cancelled()),
        };
        call.progress.report("the tests run");
        let issue = place.issue_text();
        let checked = tokio::select! {
            checked = check_test(&session, &source, &issue, &test_input) => checked.map_err(CallError::from),
            () = call.cancelled() => Err(CallError::cancelled()),
        };
        let stopped = session.stop().await;
        let checked = checked?;
        stopped.map_err(Error::from)?;
        let checked = checked.map_err(CallError)?;
        answer(&checked.text, &checked.evidence)
    }
}

fn read_test(args: &CheckArgs) -> Result<TestInput, CallError> {
    match (&args.patch, &args.path, &args.content) {
        (Some(patch), None, None) => Ok(TestInput::Patch(patch.clone())),
        (None, Some(path), Some(content)) => {
            check_path("path", path)?;
            Ok(TestInput::File {
                path: path.clone(),
                content: content.clone().into_bytes(),
            })
        }
        _ => Err(CallError(
            "failed to read the test: there is neither a patch nor a file, or both\nhint: set either `patch`, or \
             `path` and `content`"
                .to_owned(),
        )),
    }
}
