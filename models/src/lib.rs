//! Language models: requests, replies, and the clients that connect them.
//!
//! [`Model`] is the only interface. Its implementations are an OpenAI-compatible client (`openai`), record
//! and replay (`cassette`), and wrappers such as `retry`. `text_calls` parses tool calls written as text.
//! Dollars come from prices (`price`): those of the settings, and a table of common models
//! (`known_models`). The rule-based model, which needs no API key, is `testwright_agent::rule_based`.

#![warn(missing_docs)]

pub mod cassette;
pub mod conversation;
pub mod known_models;
pub mod message;
pub mod name;
pub mod near_json;
pub mod openai;
pub mod price;
pub mod provider;
pub mod quota;
pub mod retry;
pub mod spending_limit;
pub mod text_calls;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_config::error::Error;
use testwright_tools::tool::ToolSpec;

pub use conversation::Turn;
pub use message::{Arguments, ExtraFields, Message, ToolCall, ToolResult};
pub use name::{ModelName, ModelSource};

/// One request to a model. Within a run, messages are only appended, so that the provider's prompt cache
/// stays valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Tools that the reply may call; empty for none.
    pub tools: Vec<ToolSpec>,
    /// Whether a reply may contain several tool calls.
    pub parallel_calls: bool,
    /// Sampling temperature; `None` for the client's default.
    pub temperature: Option<f64>,
    /// Maximum number of completion tokens.
    pub max_tokens: Option<u64>,
}

/// A model's reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Text of the reply; may be empty.
    pub content: String,
    /// Tool calls that could be read, in the order of the reply.
    pub calls: Vec<ToolCall>,
    /// Tool calls that could not be read, each with a problem to report to the model.
    pub malformed: Vec<MalformedCall>,
    /// Further fields that the service expects back with this reply, such as reasoning.
    #[serde(default, skip_serializing_if = "ExtraFields::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub extra: ExtraFields,
    /// Tokens and cost of this reply.
    pub usage: Usage,
    /// Reason why the reply ended.
    pub finish: Finish,
    /// Number of calls that failed and were repeated before this reply.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_tries: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A tool call that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MalformedCall {
    /// Id of the call, which the answering tool message repeats. `None` if the call is text in [`Reply::content`]; a
    /// user message answers it then. [`Reply::turn`] handles both.
    pub id: Option<String>,
    /// Name of the tool, if it could be read.
    pub name: Option<String>,
    /// Text that the model wrote, truncated.
    pub text: String,
    /// Problem with the call, to report to the model.
    pub problem: String,
    /// Further fields of the call that the service expects back.
    #[serde(default, skip_serializing_if = "ExtraFields::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub extra: ExtraFields,
}

/// The reason why a reply ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The reply is complete.
    #[default]
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The completion reached its token limit.
    Length,
    /// The provider withheld the rest of the reply.
    ContentFilter,
}

/// Tokens of one or more calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All prompt tokens, including cached ones.
    pub prompt_tokens: u64,
    /// Prompt tokens from the provider's cache, a part of `prompt_tokens`.
    pub cached_tokens: u64,
    /// Tokens that the model wrote.
    pub completion_tokens: u64,
    /// Cost from the price table; `None` if the model has no price.
    pub dollars: Option<f64>,
    /// Whether the provider sent no usage, so that the numbers are an estimate of 4 characters per token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl std::ops::AddAssign for Usage {
    /// Adds usage. The sum has a cost only if every part has one, and is estimated if any part is.
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

/// A failed call of a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", content = "detail", rename_all = "snake_case")]
pub enum ModelError {
    /// The prompt does not fit into the context. Compaction helps, a retry does not.
    #[error("the prompt does not fit into the model's context: {0}")]
    ContextFull(String),
    /// The call failed, but a retry may succeed (429, 5xx, a broken connection).
    #[error("{message}")]
    Transient {
        /// Description of the failure, for the user.
        message: String,
        /// Seconds to wait, from Retry-After.
        after: Option<f64>,
        /// Whether the request was refused before any work, so that it is not billed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unbilled: bool,
    },
    /// The address has no server: the connection was refused, or the host name is unknown.
    #[error("{message}")]
    Unreachable {
        /// Description of the failure, for the user.
        message: String,
        /// Advice on what to check.
        hint: String,
    },
    /// The call will keep failing: a wrong key, an unknown model, a request that the provider refuses.
    #[error("{message}")]
    Fatal {
        /// Description of the failure, for the user.
        message: String,
        /// Advice on what to change, if there is any.
        hint: Option<String>,
    },
    /// The service refused the request for a reason that is not known. A shorter prompt may help, a retry
    /// does not.
    #[error("{message}")]
    Refused {
        /// Description of the failure, for the user.
        message: String,
    },
    /// The recording has no answer to this request.
    #[error("{0}")]
    NotRecorded(String),
    /// The call was not made, because it could exceed the dollars left for a comparison or a day.
    #[error("{0}")]
    CeilingReached(String),
    /// The time of the recorded run was up, before the call or during it.
    #[error("the time of the recorded run was up")]
    TimeUp {
        /// Whether the call had begun.
        begun: bool,
    },
}

impl ModelError {
    /// Creates an error for which no retry helps.
    pub fn fatal(message: impl Into<String>, hint: impl Into<Option<String>>) -> ModelError {
        ModelError::Fatal {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Returns whether the provider may have worked on the request.
    pub fn may_be_billed(&self) -> bool {
        match self {
            ModelError::Transient { unbilled, .. } => !unbilled,
            ModelError::Fatal { .. } | ModelError::Refused { .. } => true,
            ModelError::ContextFull(_)
            | ModelError::Unreachable { .. }
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
            ModelError::Unreachable { hint, .. } => Some(hint),
            ModelError::Refused { .. } => None,
            ModelError::ContextFull(_) => Some("choose a model with a larger context".to_owned()),
            ModelError::CeilingReached(_) => {
                Some("raise --max-dollars or `dollars-per-day` in [model-limits], or lower model.max-tokens".to_owned())
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
            hint,
            ..Error::infrastructure("get an answer from the model").cause(cause)
        }
    }
}

/// A language model, or a substitute for one.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the name used in records and in the price table, e.g. `gpt-5-mini`.
    fn name(&self) -> &str;

    /// Asks for the next reply.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, its prompt does not fit, or it would exceed a quota.
    async fn complete(&self, request: &Request) -> Result<Reply, ModelError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_error_keeps_hint() {
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
