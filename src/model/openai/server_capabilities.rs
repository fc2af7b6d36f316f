//! What a server takes, learned from what it refuses.

use super::OpenAiSettings;
use super::endpoint::{Endpoint, Refusal};
use super::request::Body;

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

/// How servers say that the content of a message must be a text (llama-cpp-python, pydantic's two versions, Go's and Rust's
/// readers of JSON).
const NO_NULL: [&str; 6] = [
    "should be a valid string",
    "string_type",
    "none is not an allowed",
    "nonetype",
    "null",
    "expected a string",
];

/// How servers say that they have no tool calls (Ollama, vLLM, llama.cpp, OpenRouter).
const NO_TOOLS: [&str; 10] = [
    "does not support tools",
    "not support tool",
    "support tool use",
    "support function calling",
    "not support function",
    "tool choice requires",
    "enable-auto-tool-choice",
    "tool-call-parser",
    "--jinja",
    "tools are not supported",
];

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

    /// How to ask after `refusal` of `body`; `None` where it is not about a field.
    pub(super) fn learned(self, refusal: &Refusal, body: &Body<'_>) -> Option<ServerCapabilities> {
        if !matches!(refusal.status, 400 | 404 | 405 | 415 | 422 | 500 | 501) {
            return None;
        }
        let said = refusal.body.to_lowercase();
        let sent = |field: &str| body.has(field);
        let mut better = self;
        if sent("tools") && NO_TOOLS.iter().any(|words| said.contains(words)) {
            better.tools_field = false;
        } else if self.null_content
            && body.has_null_content()
            && said.contains("content")
            && NO_NULL.iter().any(|words| said.contains(words))
        {
            better.null_content = false;
        } else if !matches!(refusal.status, 400 | 422) {
            return None;
        } else if sent("max_tokens") && said.contains("max_completion_tokens") {
            better.completion_limit = true;
        } else if sent("max_completion_tokens") && said.contains("max_completion_tokens") {
            better.completion_limit = false;
        } else if sent("stream_options") && said.contains("stream_options") {
            better.usage_in_stream = false;
        } else if sent("parallel_tool_calls") && said.contains("parallel_tool_calls") {
            better.parallel_field = false;
        } else if sent("temperature")
            && said.contains("temperature")
            && ["support", "default", "deprecated", "not allowed", "only 1"]
                .iter()
                .any(|w| said.contains(w))
        {
            better.temperature = false;
        }
        (better != self).then_some(better)
    }
}
