//! `check_test`: the gate's verdict on a test that the client provides.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{CallToolResult, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use testwright_sandboxes::repository::{self, File, FileKind, Files, Source};
use testwright_tools::tool::Tool as _;
use testwright_tools::tools::Restore;
use testwright_tools::tools::changes::LINK;

use super::sandbox_place::SandboxPlace;
use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool, answer};
use crate::fields::check_path;
use testwright_agent::gate::{self, SubmissionCheck, Verdict};
use testwright_agent::session::Session;
use testwright_config::error::Error;

/// Timeout of the check, not counting the start of the sandbox.
const CHECK_TIMEOUT: Duration = Duration::from_secs(900);

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

/// The gate's verdict.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// Whether the test fails on the old code for a sound reason, and again in every rerun.
    accepted: bool,
    /// Problems with the test; empty if it is accepted.
    findings: Vec<Finding>,
    /// The failing tests.
    failing: Vec<FailingTest>,
    /// Tests of the patch that already pass on the old code.
    passing: Vec<String>,
    /// Parts of the patch that were dropped, with reasons.
    dropped: Vec<String>,
    /// Test as the gate ran it, as a patch for `git apply`.
    patch: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Finding {
    /// Name of the rule.
    rule: Value,
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FailingTest {
    /// `path::Class::function`.
    id: String,
    /// Description of the failure.
    fails: String,
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
        .with_output_schema::<Checked>()
        .with_title("Check a test")
        .with_annotations(Effects::READS.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let args: CheckArgs = call.arguments()?;
        let test_input = TestInput::of(&args)?;
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
            checked = check(&session, &source, &issue, &test_input) => checked,
            () = call.cancelled() => Err(CallError::cancelled()),
        };
        let stopped = session.stop().await;
        let checked = checked?;
        stopped.map_err(Error::from)?;
        let (text, checked) = checked;
        answer(&text, &checked)
    }
}

enum TestInput<'a> {
    Patch(&'a str),
    File { path: &'a str, content: &'a str },
}

impl<'a> TestInput<'a> {
    fn of(args: &'a CheckArgs) -> Result<Self, CallError> {
        match (&args.patch, &args.path, &args.content) {
            (Some(patch), None, None) => Ok(TestInput::Patch(patch)),
            (None, Some(path), Some(content)) => {
                check_path("path", path)?;
                Ok(TestInput::File { path, content })
            }
            _ => Err(CallError(
                "failed to read the test: there is neither a patch nor a file, or both\nhint: set either `patch`, or \
                 `path` and `content`"
                    .to_owned(),
            )),
        }
    }

    /// Returns the files of the test, relative to the old code.
    fn files(&self, source: &Source) -> Result<Files, CallError> {
        let patch = match self {
            TestInput::Patch(patch) => patch,
            TestInput::File { path, content } => {
                let file = File {
                    content: content.as_bytes().to_vec(),
                    kind: FileKind::Plain,
                };
                return Ok(Files::from([((*path).to_owned(), Some(file))]));
            }
        };
        let tree = source.tree().map_err(Error::from)?;
        let applied = repository::apply(&tree, &Files::new(), patch).map_err(Error::from)?;
        match applied {
            Ok(applied) => Ok(applied.files),
            Err(why) => Err(CallError(format!("the patch does not apply: {why}"))),
        }
    }
}

async fn check(
    session: &Session,
    source: &Source,
    issue: &str,
    test_input: &TestInput<'_>,
) -> Result<(String, Checked), CallError> {
    let files: Vec<Value> = test_input.files(source)?.iter().map(encoded).collect();
    let put = session
        .call(Restore::NAME, json!({ "files": files }), CHECK_TIMEOUT)
        .await
        .map_err(Error::from)?;
    if put.refused {
        return Err(CallError(put.text));
    }
    let check = gate::check_submission(session, source, issue, &json!({}), CHECK_TIMEOUT)
        .await
        .map_err(Error::from)?;
    match check {
        SubmissionCheck::Refused(text) => Err(CallError(text)),
        SubmissionCheck::Judged {
            submission,
            verdict,
        } => Ok((verdict.text(), checked(&verdict, submission.patch))),
    }
}

/// Encodes a file for the tool `restore`.
fn encoded((path, file): (&String, &Option<File>)) -> Value {
    let mode = file.as_ref().and_then(|file| match file.kind {
        FileKind::Plain => None,
        FileKind::Executable => Some(0o100_755),
        FileKind::Link => Some(LINK),
    });
    let content = file
        .as_ref()
        .map(|file| BASE64_STANDARD.encode(&file.content));
    json!({ "path": path, "content": content, "mode": mode })
}

fn checked(verdict: &Verdict, patch: String) -> Checked {
    Checked {
        accepted: verdict.accepted(),
        findings: verdict
            .findings
            .iter()
            .map(|finding| Finding {
                rule: serde_json::to_value(finding.rule).unwrap_or_default(),
                text: finding.text.clone(),
            })
            .collect(),
        failing: verdict
            .failing
            .iter()
            .map(|test| FailingTest {
                id: test.id.clone(),
                fails: format!("{}{}", test.line(), test.limits()),
            })
            .collect(),
        passing: verdict.passing.clone(),
        dropped: verdict.dropped.clone(),
        patch,
    }
}
