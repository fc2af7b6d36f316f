//! The known capabilities of a server; `refused_field` and `overflow` learn more. They hold for the rest of
//! the run.

use super::OpenAiSettings;
use super::endpoint::Endpoint;
use super::tool_schema::SchemaForm;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    /// Field for the limit of completion tokens.
    pub(super) limit_field: LimitField,
    /// Accepts a temperature; reasoning models do not.
    pub(super) temperature: bool,
    /// Streams replies.
    pub(super) stream: bool,
    /// Accepts `stream_options: {include_usage: true}`.
    pub(super) usage_in_stream: bool,
    /// Says in a stream why the reply ended.
    pub(super) finish_in_stream: bool,
    /// Accepts `parallel_tool_calls: false`, to allow only one call at a time.
    pub(super) parallel_field: bool,
    /// Accepts the `tools` field and messages with calls.
    pub(super) tools_field: bool,
    /// Form of the tools' schemas that it accepts.
    pub(super) schemas: SchemaForm,
    /// Effort that it needs next to tools; `None` to leave the field out.
    pub(super) effort: Option<&'static str>,
    /// Accepts `content: null` next to tool calls, as OpenAI does; otherwise an empty text is sent.
    pub(super) null_content: bool,
    /// Accepts a system message; otherwise its text goes into the first user message.
    pub(super) system_role: bool,
    /// Accepts a user message after a tool message; otherwise its text goes into the tool message.
    pub(super) user_after_tool: bool,
    /// Accepts its own extra fields of earlier replies.
    pub(super) extra_fields: bool,
    /// Requires the field `reasoning_content` in all messages of the assistant.
    pub(super) needs_reasoning: bool,
    /// Requires the signature of its reasoning in each message with calls, as Gemini 3 does.
    pub(super) needs_signature: bool,
    /// Requires a limit of completion tokens.
    pub(super) needs_limit: bool,
    /// Maximum completion tokens, if it named them.
    pub(super) max_completion: Option<u64>,
    /// Maximum tokens of prompt and completion together, if it named them.
    pub(super) context: Option<u64>,
    /// Number of tokens of a prompt with known length.
    pub(super) density: Option<Density>,
}

/// Field for the limit of completion tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitField {
    MaxTokens,
    MaxCompletionTokens,
    /// The server accepts neither.
    None,
}

impl LimitField {
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            LimitField::MaxTokens => Some("max_tokens"),
            LimitField::MaxCompletionTokens => Some("max_completion_tokens"),
            LimitField::None => None,
        }
    }
}

/// Number of tokens of a prompt with this length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Density {
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

/// Bytes per token of English text and code.
const BYTES_PER_TOKEN: u64 = 4;

/// Smallest context that a service for this purpose can have. A smaller number is a misread one.
const MIN_CONTEXT: u64 = 1024;

/// Limit of completion tokens for servers that require one.
const DEFAULT_COMPLETION: u64 = 8_192;

/// Minimum completion tokens that are worth a request.
const MIN_COMPLETION: u64 = 256;

impl ServerCapabilities {
    pub(super) fn at_first(settings: &OpenAiSettings, endpoint: &Endpoint) -> Self {
        ServerCapabilities {
            limit_field: match endpoint.host == "api.openai.com" {
                true => LimitField::MaxCompletionTokens,
                false => LimitField::MaxTokens,
            },
            temperature: true,
            stream: settings.stream,
            usage_in_stream: true,
            finish_in_stream: true,
            parallel_field: true,
            tools_field: !settings.tools_in_text,
            schemas: SchemaForm::Full,
            effort: None,
            null_content: true,
            system_role: true,
            user_after_tool: true,
            extra_fields: true,
            needs_reasoning: false,
            needs_signature: false,
            needs_limit: false,
            max_completion: None,
            context: None,
            density: None,
        }
    }

    /// Returns the limit of completion tokens for a request without one, if the server requires it.
    pub(super) fn default_limit(&self) -> Option<u64> {
        self.needs_limit.then_some(DEFAULT_COMPLETION)
    }

    /// Estimates the tokens of a prompt with this length in bytes.
    pub(super) fn tokens(&self, bytes: u64) -> u64 {
        match self.density {
            Some(density) if density.bytes > 0 => {
                let product = u128::from(bytes) * u128::from(density.tokens);
                let tokens = product.div_ceil(u128::from(density.bytes));
                u64::try_from(tokens).unwrap_or(u64::MAX)
            }
            _ => bytes / BYTES_PER_TOKEN,
        }
    }

    /// Returns the limit of completion tokens to send for a prompt with this length.
    pub(super) fn completion_limit(&self, requested_tokens: u64, bytes: u64) -> u64 {
        let room = self.context.map_or(u64::MAX, |context| {
            context
                .saturating_sub(self.tokens(bytes))
                .max(MIN_COMPLETION)
        });
        requested_tokens
            .min(self.max_completion.unwrap_or(u64::MAX))
            .min(room)
    }

    /// Returns the number of tokens of a prompt, if it surely exceeds the limit that the server named.
    pub(super) fn excess_tokens(&self, bytes: u64) -> Option<(u64, u64)> {
        let context = self.context?;
        let tokens = self.tokens(bytes);
        // Without a counted prompt, the estimate may be far off.
        let margin = match self.density {
            Some(_) => context / 20,
            None => context / 2,
        };
        (tokens > context.saturating_add(margin)).then_some((tokens, context))
    }

    /// Learns the limit of the context, and the tokens of the prompt that was refused.
    pub(super) fn learn_context(&mut self, limit: Option<u64>, prompt: Option<u64>, bytes: u64) {
        if let Some(tokens) = prompt.filter(|tokens| *tokens > 0) {
            self.density = Some(Density { bytes, tokens });
        }
        // A number far from the prompt's counts something else, such as a code of an error.
        let tokens = self.tokens(bytes);
        let plausible = MIN_CONTEXT.max(tokens / 3)..=tokens.saturating_mul(4);
        if let Some(limit) = limit.filter(|limit| plausible.contains(limit)) {
            self.context = Some(limit);
        }
    }

    /// Learns from a reply how many tokens its prompt had.
    pub(super) fn learn_prompt(&mut self, tokens: u64, bytes: u64) {
        if tokens == 0 || bytes == 0 {
            return;
        }
        self.density = Some(Density { bytes, tokens });
        if self.context.is_some_and(|context| tokens > context) {
            self.context = None;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn capabilities() -> ServerCapabilities {
        let settings = OpenAiSettings::new("m");
        let endpoint = Endpoint::new(&settings).unwrap();
        ServerCapabilities::at_first(&settings, &endpoint)
    }

    #[test]
    fn named_limit_bounds_later_requests() {
        let mut limits = capabilities();
        assert_eq!(limits.completion_limit(8_192, 40_000), 8_192);
        assert_eq!(limits.excess_tokens(1 << 30), None);
        limits.learn_context(Some(8_192), Some(4_012), 16_048);
        assert_eq!(limits.completion_limit(8_192, 16_048), 4_180);
        assert_eq!(limits.completion_limit(1_000, 16_048), 1_000);
        assert_eq!(limits.completion_limit(8_192, 32_600), 256);
        assert_eq!(limits.excess_tokens(32_768), None);
        assert_eq!(limits.excess_tokens(40_000), Some((10_000, 8_192)));
        // A reply with a longer prompt shows that the limit was misread.
        limits.learn_prompt(20_000, 80_000);
        assert_eq!(limits.excess_tokens(400_000), None);
        limits.learn_context(Some(40), None, 400_000);
        limits.learn_context(Some(90_000_000), None, 400_000);
        limits.learn_context(Some(2_013), None, 400_000);
        assert_eq!(limits.context, None);
    }
}
