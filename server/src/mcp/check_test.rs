//! `check_test`: what the gate says of a test that somebody else wrote.

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

use super::place::SandboxPlace;
use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool, answer};
use crate::fields::check_path;
use testwright_agent::gate::{self, SubmissionCheck, Verdict};
use testwright_agent::session::Session;
use testwright_config::error::Error;

/// Longest time of the check, once there is a sandbox.
const DEADLINE: Duration = Duration::from_secs(900);

pub struct CheckTest;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckArgs {
    /// The repository: a URL, or a folder of the server; needed where the issue is no URL. The server's list says which are
    /// allowed.
    repository: Option<String>,
    /// The old code: a commit, tag or branch. Default: HEAD.
    commit: Option<String>,
    /// The issue, which is read when the test asks for a name that does not exist yet: the URL of a GitHub issue, or a line with
    /// its title, and its text.
    issue: Option<String>,
    /// The test, as a patch for `git apply` on the old code.
    patch: Option<String>,
    /// In place of a patch: where in the repository the test file is, or is to be.
    path: Option<String>,
    /// With `path`: the whole content of the test file.
    content: Option<String>,
}

/// What the gate says.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// The test fails on the old code in a sound way, and again in every rerun.
    accepted: bool,
    /// What is wrong; empty where it is accepted.
    findings: Vec<Finding>,
    /// The failing tests.
    failing: Vec<FailingTest>,
    /// Tests of the patch that pass on the old code already.
    passing: Vec<String>,
    /// What was left out of the patch, and why.
    dropped: Vec<String>,
    /// The test as the gate ran it, as a patch for `git apply`.
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
    /// How it fails.
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
            "Runs a given test on the old code of a Python repository and says whether it is accepted as a test that reproduces \
             an issue: only test files change, it fails in a sound way, it fails again under other conditions, it runs code of \
             the repository. What is wrong is named.",
            serde_json::Map::new(),
        )
        .with_input_schema::<CheckArgs>()
        .with_output_schema::<Checked>()
        .with_title("Check a test")
        .with_annotations(Effects::READS.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let args: CheckArgs = call.arguments()?;
        let given = GivenTest::of(&args)?;
        let parts = call.parts;
        let place = SandboxPlace::of(
            &parts.api,
            args.repository.as_deref(),
            args.commit.as_deref(),
            args.issue.as_deref(),
        )
        .await?;
        let owner = call.caller().owner;
        let _room = tokio::select! {
            room = parts.sessions.room(&owner) => room?,
            () = call.cancelled() => return Err(CallError::cancelled()),
        };
        let (source, session) = tokio::select! {
            started = place.start(&parts.api, &call.progress) => started?,
            () = call.cancelled() => return Err(CallError::cancelled()),
        };
        call.progress.tell("the tests run");
        let issue = place.issue_text();
        let checked = tokio::select! {
            checked = check(&session, &source, &issue, &given) => checked,
            () = call.cancelled() => Err(CallError::cancelled()),
        };
        let stopped = session.stop().await;
        let checked = checked?;
        stopped.map_err(Error::from)?;
        let (text, checked) = checked;
        answer(&text, &checked)
    }
}

enum GivenTest<'a> {
    Patch(&'a str),
    File { path: &'a str, content: &'a str },
}

impl<'a> GivenTest<'a> {
    fn of(args: &'a CheckArgs) -> Result<Self, CallError> {
        match (&args.patch, &args.path, &args.content) {
            (Some(patch), None, None) => Ok(GivenTest::Patch(patch)),
            (None, Some(path), Some(content)) => {
                check_path("path", path)?;
                Ok(GivenTest::File { path, content })
            }
            _ => Err(CallError(
                "failed to read the test: there is neither a patch nor a file, or more than one of them\nhint: give `patch`, or \
                 `path` and `content`"
                    .to_owned(),
            )),
        }
    }

    /// The files of the test, beside the old code.
    fn files(&self, source: &Source) -> Result<Files, CallError> {
        let patch = match self {
            GivenTest::Patch(patch) => patch,
            GivenTest::File { path, content } => {
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
    given: &GivenTest<'_>,
) -> Result<(String, Checked), CallError> {
    let files: Vec<Value> = given.files(source)?.iter().map(encoded).collect();
    let put = session
        .call(Restore::NAME, json!({ "files": files }), DEADLINE)
        .await
        .map_err(Error::from)?;
    if put.refused {
        return Err(CallError(put.text));
    }
    let check = gate::check_submission(session, source, issue, &json!({}), DEADLINE)
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

/// As the tool `restore` takes it.
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
