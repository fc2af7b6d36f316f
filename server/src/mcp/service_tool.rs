//! What a tool of testwright's own services is: how it is called, and how it answers.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use testwright_tools::visible;

use super::open_sessions::ClientSession;
use super::progress::CallProgress;
use super::{McpParts, session_end};
use crate::api::Problem;
use crate::authentication::Caller;
use testwright_config::error::Error;

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
        session_end::cancelled(self.context).await;
    }
}

/// What a service does to the server's state and to others, as clients are told.
pub struct Effects {
    is_read_only: bool,
    is_destructive: bool,
    is_idempotent: bool,
    /// It reaches repositories, issues and model services that the client names.
    is_open_world: bool,
}

impl Effects {
    /// It leaves nothing behind.
    pub const READS: Effects = Effects {
        is_read_only: true,
        is_destructive: false,
        is_idempotent: true,
        is_open_world: true,
    };
    /// Each call makes something new.
    pub const CREATES: Effects = Effects {
        is_read_only: false,
        is_idempotent: false,
        ..Effects::READS
    };
    /// It removes what an earlier call made.
    pub const REMOVES: Effects = Effects {
        is_read_only: false,
        is_destructive: true,
        is_open_world: false,
        ..Effects::READS
    };

    pub fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(self.is_read_only)
            .destructive(self.is_destructive)
            .idempotent(self.is_idempotent)
            .open_world(self.is_open_world)
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
