//! What a tool of testwright's own services is: how it is called, and how it answers.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use testwright_tools::server::visible;

use super::McpParts;
use super::open_sessions::ClientSession;
use super::progress::CallProgress;
use crate::daemon::api::Problem;
use crate::daemon::authentication::Caller;
use crate::error::Error;

#[async_trait::async_trait]
pub trait ServiceTool: Send + Sync {
    fn name(&self) -> &'static str;

    /// As clients list it.
    fn tool(&self) -> Tool;

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError>;
}

pub struct ServiceCall<'c> {
    pub parts: &'c McpParts,
    /// Of the client.
    pub session: &'c ClientSession,
    pub arguments: JsonObject,
    pub context: &'c RequestContext<RoleServer>,
    pub progress: CallProgress,
}

impl ServiceCall<'_> {
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_value(self.arguments.clone().into())
            .map_err(|error| CallError(format!("failed to read the arguments: {error}")))
    }

    /// Who asks: as the request over HTTP showed, or whoever started this process.
    pub fn caller(&self) -> Caller {
        let request = self.context.extensions.get::<Parts>();
        let known = request.and_then(|request| request.extensions.get::<Caller>());
        known.cloned().unwrap_or_default()
    }

    /// Ends when the client takes its request back, or is gone.
    pub async fn cancelled(&self) {
        self.context.ct.cancelled().await;
    }
}

/// For whoever called.
#[derive(Debug)]
pub struct CallError(pub String);

impl CallError {
    pub fn cancelled() -> Self {
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

/// As text, and as data of the tool's output schema.
pub fn answer(text: &str, data: &impl Serialize) -> Result<CallToolResult, CallError> {
    let data = serde_json::to_value(data)
        .map_err(|error| CallError(format!("failed to encode the answer: {error}")))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(visible(text))]);
    result.structured_content = Some(data);
    Ok(result)
}
