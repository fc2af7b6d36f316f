//! The tools of a session. Each call takes the route that its tool declares: to the toolbox in the sandbox or a fork of
//! it, or to the gate.

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

use testwright_agent::gate::{self, Verdict};
use testwright_agent::session::{CallAnswer, Session};

/// Timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(900);

/// The gate's verdict, as structured data.
#[derive(Serialize, JsonSchema)]
struct Submitted {
    accepted: bool,
    verdict: Verdict,
    /// Test as the gate ran it, as a patch for `git apply`.
    patch: String,
}

/// The tools of one session.
pub struct RawTools {
    session: Arc<Session>,
    source: Source,
    /// Text of the issue, if given. The gate reads it to find names that do not exist yet.
    issue: String,
    tools: Vec<&'static dyn AnyTool>,
}

impl RawTools {
    /// Returns the name of the repository.
    pub fn repository(&self) -> &str {
        &self.source.name
    }

    /// Creates the tools of a session; `issue` is empty if no issue is given.
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
            Route::Fork => {
                self.session
                    .call_in_fork(name, arguments, CALL_TIMEOUT)
                    .await
            }
            Route::Gate => {
                let check = gate::check_submission(
                    &self.session,
                    &self.source,
                    &self.issue,
                    &arguments,
                    CALL_TIMEOUT,
                )
                .await;
                let (text, data, refused) = match check {
                    Ok((submission, verdict)) => {
                        let text = verdict.text();
                        (text, submitted(verdict, submission.patch)?, false)
                    }
                    Err(error) => (error.refusal()?, Value::Null, true),
                };
                Ok(CallAnswer {
                    text,
                    data,
                    refused,
                    ended: false,
                })
            }
            Route::Sandbox => self.session.call(name, arguments, CALL_TIMEOUT).await,
        }
    }

    /// Lists the tools for clients.
    pub fn list(&self) -> Vec<Tool> {
        let listed = |tool: &&dyn AnyTool| match tool.route() {
            Route::Gate => listed(*tool).with_output_schema::<Submitted>(),
            Route::Sandbox | Route::Fork => listed(*tool),
        };
        self.tools.iter().map(listed).collect()
    }

    /// Calls a tool; `None` if there is no tool of this name.
    ///
    /// # Errors
    ///
    /// The inner result is an error if the sandbox fails.
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
        // The protocol allows only objects, and untrusted code in the sandbox may control the toolbox.
        if answer.data.is_object() {
            result.structured_content = Some(answer.data);
        }
        Some(Ok(result))
    }

    /// Ends the sandbox; running calls fail.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox cannot be ended.
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
