//! The interface of testwright's own services, as tools.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use testwright_tools::visible;

use super::open_sessions::ClientSession;
use super::progress::CallProgress;
use super::{McpParts, session_end};
use crate::api::Problem;
use crate::authentication::Caller;
use crate::problem::parse_json;
use testwright_agent::agent::Progress;
use testwright_config::error::Error;

/// A service with the types of its arguments and of its result.
#[async_trait::async_trait]
pub(super) trait Service: Send + Sync {
    type Args: DeserializeOwned + JsonSchema + Send + 'static;
    type Output: Serialize + JsonSchema + 'static;

    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    const EFFECTS: Effects;

    /// Returns the result as text for a model, and as data.
    async fn run(
        call: &ServiceCall<'_>,
        args: Self::Args,
    ) -> Result<(String, Self::Output), CallError>;
}

/// A service as a tool.
#[async_trait::async_trait]
pub(super) trait ServiceTool: Send + Sync {
    fn name(&self) -> &'static str;

    /// Returns the description for clients.
    fn tool(&self) -> Tool;

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError>;
}

#[async_trait::async_trait]
impl<S: Service> ServiceTool for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn tool(&self) -> Tool {
        Tool::new(S::NAME, S::DESCRIPTION, JsonObject::new())
            .with_input_schema::<S::Args>()
            .with_output_schema::<S::Output>()
            .with_title(S::TITLE)
            .with_annotations(S::EFFECTS.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let (text, data) = S::run(call, call.arguments()?).await?;
        answer(&text, &data)
    }
}

pub(super) struct ServiceCall<'c> {
    pub parts: &'c McpParts,
    /// The client's session.
    pub session: &'c ClientSession,
    pub arguments: JsonObject,
    pub context: &'c RequestContext<RoleServer>,
    pub progress: CallProgress,
}

impl ServiceCall<'_> {
    fn arguments<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        let failed = |error: String| CallError(format!("failed to read the arguments: {error}"));
        let json =
            serde_json::to_vec(&self.arguments).map_err(|error| failed(error.to_string()))?;
        parse_json(&json).map_err(failed)
    }

    /// Returns the caller: the authenticated one of an HTTP request, otherwise the local user.
    pub(super) fn caller(&self) -> Caller {
        let request = self.context.extensions.get::<Parts>();
        let caller = request.and_then(|request| request.extensions.get::<Caller>());
        caller.cloned().unwrap_or_default()
    }

    /// Returns the progress of this call, to report what happens while a sandbox is prepared.
    pub(super) fn sandbox_progress(&self) -> Arc<dyn Progress> {
        Arc::new(self.progress.clone())
    }

    /// Completes when the client cancels its request or disconnects.
    pub(super) async fn cancelled(&self) {
        session_end::cancelled(self.context).await;
    }
}

/// The effects of a service.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Effects {
    /// The service leaves nothing behind.
    Reads,
    /// The service creates something new with each call.
    Creates,
    /// The service removes something that an earlier call created.
    Removes,
}

impl Effects {
    /// Describes the effects to clients. Each service except those that remove something contacts repositories, issues and
    /// model services that the client names.
    fn annotations(self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(self == Effects::Reads)
            .destructive(self == Effects::Removes)
            .idempotent(self != Effects::Creates)
            .open_world(self != Effects::Removes)
    }
}

/// An error message for the caller.
#[derive(Debug)]
pub(super) struct CallError(pub String);

impl CallError {
    pub(super) fn cancelled() -> Self {
        CallError("cancelled".to_owned())
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        let text = error.with_cause();
        CallError(match error.hint {
            Some(hint) => format!("{text}\nhint: {hint}"),
            None => text,
        })
    }
}

impl From<Problem> for CallError {
    fn from(problem: Problem) -> Self {
        CallError(problem.text())
    }
}

/// Logs a failed cancellation of a job, because its client does not read the answer. There is nothing to cancel if the job
/// has ended or was deleted.
pub(super) fn log_failed_cancellation(id: &str, problem: &Problem) {
    if ![StatusCode::CONFLICT, StatusCode::NOT_FOUND].contains(&problem.status()) {
        let problem = problem.text();
        tracing::warn!(
            id,
            problem,
            "a job continues, although its client cancelled it"
        );
    }
}

/// Creates a result with text, and with data that matches the tool's output schema.
fn answer(text: &str, data: &impl Serialize) -> Result<CallToolResult, CallError> {
    let data = serde_json::to_value(data)
        .map_err(|error| CallError(format!("failed to encode the result: {error}")))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(visible(text))]);
    result.structured_content = Some(data);
    Ok(result)
}
