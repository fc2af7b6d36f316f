//! What a server takes, as far as it is known; `refused_field` learns more.

use super::OpenAiSettings;
use super::endpoint::Endpoint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    /// `max_completion_tokens` instead of `max_tokens`.
    pub(super) completion_limit: bool,
    /// Reasoning models take no temperature.
    pub(super) temperature: bool,
    /// `stream_options: {include_usage: true}`.
    pub(super) usage_in_stream: bool,
    /// `parallel_tool_calls: false` where one call at a time is wanted.
    pub(super) parallel_field: bool,
    /// The `tools` field, and messages with calls.
    pub(super) tools_field: bool,
    /// `content: null` beside tool calls, as OpenAI has it; else an empty text.
    pub(super) null_content: bool,
}

impl ServerCapabilities {
    pub(super) fn at_first(settings: &OpenAiSettings, endpoint: &Endpoint) -> Self {
        ServerCapabilities {
            completion_limit: endpoint.host == "api.openai.com",
            temperature: true,
            usage_in_stream: true,
            parallel_field: true,
            tools_field: !settings.tools_in_text,
            null_content: true,
        }
    }
}
