//! Models: what the loop asks, and what answers it.
//!
//! [`Model`] is the one boundary. Behind it: an OpenAI-compatible client (`openai`), a rule-based
//! model that needs no key (`snippet`), and record/replay (`cassette`). Wrappers that are models themselves:
//! `retry`. Text-form tool calls are read by `text_calls`. Dollars come from a table (`price`).

pub mod message;
pub mod snippet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use testwright_tools::tool::ToolSpec;

pub use message::{Message, ToolCall, ToolResult};

/// One question to a model. Messages are append-only between two requests of a run, so that a
/// provider's prompt cache holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// More than one tool call in a reply is welcome.
    pub parallel_calls: bool,
    pub temperature: Option<f64>,
    /// Most completion tokens.
    pub max_tokens: Option<u64>,
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub content: String,
    pub calls: Vec<ToolCall>,
    /// Tool calls that could not be read: what was wrong with each, fit to be sent back to the model.
    pub malformed: Vec<Malformed>,
    pub usage: Usage,
    pub finish: Finish,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Malformed {
    /// The provider's id of the call, where it has one.
    pub id: Option<String>,
    /// The tool's name as far as it could be read.
    pub name: Option<String>,
    /// What the model wrote, cut.
    pub text: String,
    /// What was wrong, for the model.
    pub problem: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    #[default]
    Stop,
    ToolCalls,
    /// The completion reached its limit.
    Length,
    ContentFilter,
}

/// Tokens of one or several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// All prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// By the price table; `None` where the model has no price.
    pub dollars: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The prompt does not fit: answered by compaction, not by retrying.
    #[error("the prompt does not fit into the model's context: {0}")]
    ContextFull(String),
    /// Worth another try (429, 5xx, a broken connection); `after` as in Retry-After, seconds.
    #[error("{message}")]
    Transient { message: String, after: Option<f64> },
    /// Will not get better: a wrong key, an unknown model, a request that the provider refuses.
    #[error("{message}")]
    Fatal {
        message: String,
        hint: Option<String>,
    },
    /// A replayed run has no answer recorded for this request.
    #[error("{0}")]
    NotRecorded(String),
}

#[async_trait]
pub trait Model: Send + Sync {
    /// As in records and in the price table, e.g. `gpt-5-mini`.
    fn name(&self) -> &str;

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError>;
}
