//! The tools of a session: each call goes the way that its tool declares, to the toolbox in the sandbox or in a fork of it,
//! or to the gate.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::Source;
use testwright_tools::registry;
use testwright_tools::server::listed;
use testwright_tools::tool::{AnyTool, Route};
use testwright_tools::visible;

use testwright_agent::gate::{self, SubmissionCheck, Verdict};
use testwright_agent::session::{CallAnswer, Session};

/// Longest time of one call.
const DEADLINE: Duration = Duration::from_secs(900);

/// What the gate decided, for programs.
#[derive(Serialize, JsonSchema)]
struct Submitted {
    accepted: bool,
    verdict: Verdict,
    /// The test as the gate ran it, for `git apply`.
    patch: String,
}

/// The tools of one session.
pub struct RawTools {
    session: Arc<Session>,
    source: Source,
    /// Text of the issue, where one was given; the gate asks it for names that do not exist yet.
    issue: String,
    tools: Vec<&'static dyn AnyTool>,
}

impl RawTools {
    /// Name of the repository.
    pub fn repository(&self) -> &str {
        &self.source.name
    }

    pub fn new(session: Arc<Session>, source: Source, issue: String) -> Self {
        RawTools {
            session,
            source,
            issue,
            tools: registry::for_models().collect(),
        }
    }

    async fn call(&self, tool: &dyn AnyTool, arguments: Value) -> Result<CallAnswer, SandboxError> {
        let name = tool.name();
        match tool.route() {
            Route::Fork => self.session.call_in_fork(name, arguments, DEADLINE).await,
            Route::Gate => {
                let check = gate::check_submission(
                    &self.session,
                    &self.source,
                    &self.issue,
                    &arguments,
                    DEADLINE,
                )
                .await?;
                Ok(match check {
                    SubmissionCheck::Refused(text) => CallAnswer {
                        text,
                        data: Value::Null,
                        refused: true,
                        ended: false,
                    },
                    SubmissionCheck::Judged {
                        submission,
                        verdict,
                    } => CallAnswer {
                        text: verdict.text(),
                        data: submitted(verdict, submission.patch)?,
                        refused: false,
                        ended: false,
                    },
                })
            }
            Route::Sandbox => self.session.call(name, arguments, DEADLINE).await,
        }
    }

    /// As clients list them.
    pub fn list(&self) -> Vec<Tool> {
        let listed = |tool: &&dyn AnyTool| match tool.route() {
            Route::Gate => listed(*tool).with_output_schema::<Submitted>(),
            Route::Sandbox | Route::Fork => listed(*tool),
        };
        self.tools.iter().map(listed).collect()
    }

    /// `None` where there is no tool of this name.
    pub async fn call_by_name(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Option<Result<CallToolResult, ErrorData>> {
        let tool = self.tools.iter().find(|tool| tool.name() == name)?;
        let answer = match self.call(*tool, Value::Object(arguments)).await {
            Ok(answer) => answer,
            Err(error) => {
                let text = visible(&format!("failed to {error}")).into_owned();
                return Some(Err(ErrorData::internal_error(text, None)));
            }
        };
        let content = vec![ContentBlock::text(visible(&answer.text))];
        let mut result = if answer.refused || answer.ended {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        // The protocol allows nothing else, and a toolbox may have been taken over by the code beside it.
        if answer.data.is_object() {
            result.structured_content = Some(answer.data);
        }
        Some(Ok(result))
    }

    /// Ends the sandbox; what is called meanwhile fails.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        self.session.stop().await
    }
}

fn submitted(verdict: Verdict, patch: String) -> Result<Value, SandboxError> {
    let submitted = Submitted {
        accepted: verdict.accepted(),
        verdict,
        patch,
    };
    serde_json::to_value(submitted).map_err(|error| {
        let text = format!("encode the verdict: {error}");
        SandboxError::new(ErrorKind::System, text)
    })
}
