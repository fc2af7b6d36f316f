//! Models: what the loop asks, and what answers it.
//!
//! [`Model`] is the one boundary. Behind it: an OpenAI-compatible client (`openai`) and record/replay
//! (`cassette`). Wrappers that are models themselves: `retry`. Text-form tool calls are read by `text_calls`.
//! Dollars come from a table (`price`). The rule-based model, which needs no key, is `testwright_agent::rule_based`.

pub mod cassette;
pub mod ceiling;
pub mod conversation;
pub mod message;
pub mod name;
pub mod near_json;
pub mod openai;
pub mod price;
pub mod provider;
pub mod quota;
pub mod retry;
pub mod text_calls;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_config::error::{Error, Kind};
use testwright_tools::tool::ToolSpec;

pub use conversation::Turn;
pub use message::{Arguments, Message, ToolCall, ToolResult};
pub use name::{ModelName, ModelSource};

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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    pub content: String,
    pub calls: Vec<ToolCall>,
    /// Tool calls that could not be read: what was wrong with each, fit to be sent back to the model.
    pub malformed: Vec<MalformedCall>,
    pub usage: Usage,
    pub finish: Finish,
    /// Calls that failed and were repeated before this reply came.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_tries: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MalformedCall {
    /// The call's id, to be answered by a tool message; `None` where what the model wrote is part of
    /// [`Reply::content`] and is answered in words. [`Reply::turn`] does either.
    pub id: Option<String>,
    /// The tool's name as far as it could be read.
    pub name: Option<String>,
    /// What the model wrote, cut.
    pub text: String,
    /// What was wrong, for the model.
    pub problem: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// By the price table; `None` where the model has no price.
    pub dollars: Option<f64>,
    /// The provider sent no usage: the numbers are a guess at 4 characters a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl std::ops::AddAssign for Usage {
    /// Dollars stay known only as long as every part has a price; one estimated part marks the sum.
    fn add_assign(&mut self, other: Usage) {
        let empty = *self == Usage::default();
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.estimated |= other.estimated;
        self.dollars = match (self.dollars, other.dollars) {
            (Some(a), Some(b)) => Some(a + b),
            (None, b) if empty => b,
            (a, None) if other == Usage::default() => a,
            _ => None,
        };
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", content = "detail", rename_all = "snake_case")]
pub enum ModelError {
    /// The prompt does not fit: answered by compaction, not by retrying.
    #[error("the prompt does not fit into the model's context: {0}")]
    ContextFull(String),
    /// Worth another try (429, 5xx, a broken connection).
    #[error("{message}")]
    Transient {
        message: String,
        /// As in Retry-After, seconds.
        after: Option<f64>,
        /// Refused before any work was done: nobody bills it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unbilled: bool,
    },
    /// Will not get better: a wrong key, an unknown model, a request that the provider refuses.
    #[error("{message}")]
    Fatal {
        message: String,
        hint: Option<String>,
    },
    /// A replayed run has no answer recorded for this request.
    #[error("{0}")]
    NotRecorded(String),
    /// The call could cost more than is left of the dollars of a comparison or of a day: it was not made.
    #[error("{0}")]
    CeilingReached(String),
    /// The time of the recorded run was up: before the call was made, or while it went on.
    #[error("the time of the recorded run was up")]
    TimeUp { begun: bool },
}

impl ModelError {
    /// The provider may have worked on the request.
    pub fn may_be_billed(&self) -> bool {
        match self {
            ModelError::Transient { unbilled, .. } => !unbilled,
            ModelError::Fatal { .. } => true,
            ModelError::ContextFull(_)
            | ModelError::NotRecorded(_)
            | ModelError::CeilingReached(_)
            | ModelError::TimeUp { .. } => false,
        }
    }
}

impl From<ModelError> for Error {
    fn from(e: ModelError) -> Self {
        let cause = e.to_string();
        let hint = match e {
            ModelError::Fatal { hint, .. } => hint,
            ModelError::ContextFull(_) => Some("choose a model with a larger context".to_owned()),
            ModelError::CeilingReached(_) => {
                Some("raise --max-dollars, or `dollars-per-day` in [model-limits]".to_owned())
            }
            ModelError::NotRecorded(_) => {
                Some("the recording belongs to another run; record it again".to_owned())
            }
            ModelError::TimeUp { .. } => Some("raise --max-minutes".to_owned()),
            ModelError::Transient { .. } => {
                Some("try again later, or choose another --model".to_owned())
            }
        };
        Error {
            kind: Kind::Infrastructure,
            message: "get an answer from the model".to_owned(),
            cause: Some(cause),
            hint,
            log: None,
        }
    }
}

#[async_trait]
pub trait Model: Send + Sync {
    /// As in records and in the price table, e.g. `gpt-5-mini`.
    fn name(&self) -> &str;

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_error_keeps_its_hint() {
        let error = Error::from(ModelError::Fatal {
            message: "401".to_owned(),
            hint: Some("check the key".to_owned()),
        });
        assert_eq!(
            (error.exit_code(), error.hint.as_deref()),
            (3, Some("check the key"))
        );
    }
}
