//! The tools over MCP, for any client: each call goes the way that its tool declares, to the toolbox in the sandbox or
//! in a fork of it, or to the gate.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::Source;
use testwright_tools::registry;
use testwright_tools::server::visible;
use testwright_tools::tool::{AnyTool, Route};

use crate::gate::{self, SubmissionCheck};
use crate::session::{CallAnswer, Session};

/// Longest time of one call.
const DEADLINE: Duration = Duration::from_secs(900);

/// Serves one session.
pub struct ToolServer {
    session: Arc<Session>,
    source: Source,
    /// Text of the issue, where one was given; the gate asks it for names that do not exist yet.
    issue: String,
    tools: Vec<&'static dyn AnyTool>,
}

impl ToolServer {
    pub fn new(session: Arc<Session>, source: Source, issue: String) -> Self {
        ToolServer {
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
                        data: json!({
                            "accepted": verdict.accepted(),
                            "verdict": verdict,
                            "patch": submission.patch,
                        }),
                        refused: false,
                        ended: false,
                    },
                })
            }
            Route::Sandbox => self.session.call(name, arguments, DEADLINE).await,
        }
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("testwright", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!(
                "Tools to write a test for {} at its base commit, in a sandbox without network. \
                 `submit` says whether the test reproduces the issue.",
                self.source.name
            ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self
            .tools
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                let schema = spec.parameters.as_object().cloned().unwrap_or_default();
                Tool::new(spec.name, spec.description, schema)
            })
            .collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == request.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            return Err(ErrorData::invalid_params(
                format!(
                    "there is no tool `{}`; the tools are: {}",
                    request.name,
                    names.join(", ")
                ),
                None,
            ));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let answer = self.call(*tool, arguments).await.map_err(|error| {
            ErrorData::internal_error(visible(&format!("failed to {error}")).into_owned(), None)
        })?;
        let content = vec![ContentBlock::text(visible(&answer.text))];
        let mut result = if answer.refused || answer.ended {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        if !answer.data.is_null() {
            result.structured_content = Some(answer.data);
        }
        Ok(result.into())
    }
}
