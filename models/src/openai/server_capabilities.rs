//! The known capabilities of a server; `refused_field` learns more.

use super::OpenAiSettings;
use super::endpoint::Endpoint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    /// Expects `max_completion_tokens` instead of `max_tokens`.
    pub(super) completion_limit: bool,
    /// Accepts a temperature; reasoning models do not.
    pub(super) temperature: bool,
    /// Accepts `stream_options: {include_usage: true}`.
    pub(super) usage_in_stream: bool,
    /// Accepts `parallel_tool_calls: false`, to allow only one call at a time.
    pub(super) parallel_field: bool,
    /// Accepts the `tools` field and messages with calls.
    pub(super) tools_field: bool,
    /// Accepts `content: null` next to tool calls, as OpenAI does; otherwise an empty text is sent.
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
