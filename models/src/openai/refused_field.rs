//! Learns from a refusal which field of a request the server does not accept.

use super::endpoint::Refusal;
use super::request::Body;
use super::server_capabilities::ServerCapabilities;

/// Phrases of servers that require text as a message's content (llama-cpp-python, both versions of pydantic,
/// JSON parsers of Go and Rust).
const NO_NULL: [&str; 6] = [
    "should be a valid string",
    "string_type",
    "none is not an allowed",
    "nonetype",
    "null",
    "expected a string",
];

/// Phrases of servers without tool calls (Ollama, vLLM, llama.cpp, OpenRouter).
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

/// Returns the capabilities to use after `refusal` of `body`; `None` if it is not about a field.
pub(super) fn without_refused_field(
    capabilities: ServerCapabilities,
    refusal: &Refusal,
    body: &Body<'_>,
) -> Option<ServerCapabilities> {
    if !matches!(refusal.status, 400 | 404 | 405 | 415 | 422 | 500 | 501) {
        return None;
    }
    let answer = refusal.body.to_lowercase();
    let sent = |field: &str| body.has(field);
    let mut better = capabilities;
    if sent("tools") && NO_TOOLS.iter().any(|words| answer.contains(words)) {
        better.tools_field = false;
    } else if capabilities.null_content
        && body.has_null_content()
        && answer.contains("content")
        && NO_NULL.iter().any(|words| answer.contains(words))
    {
        better.null_content = false;
    } else if !matches!(refusal.status, 400 | 422) {
        return None;
    } else if sent("max_tokens") && answer.contains("max_completion_tokens") {
        better.completion_limit = true;
    } else if sent("max_completion_tokens") && answer.contains("max_completion_tokens") {
        better.completion_limit = false;
    } else if sent("stream_options") && answer.contains("stream_options") {
        better.usage_in_stream = false;
    } else if sent("parallel_tool_calls") && answer.contains("parallel_tool_calls") {
        better.parallel_field = false;
    } else if sent("temperature")
        && answer.contains("temperature")
        && ["support", "default", "deprecated", "not allowed", "only 1"]
            .iter()
            .any(|w| answer.contains(w))
    {
        better.temperature = false;
    }
    (better != capabilities).then_some(better)
}
