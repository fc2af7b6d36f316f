//! Learns from a refusal which form of a request the server takes. Each rule knows one field or form.

use testwright_sandboxes::Pattern;

use super::endpoint::Refusal;
use super::error_text::all_text;
use super::request::Body;
use super::server_capabilities::{LimitField, ServerCapabilities};
use super::tool_schema::SchemaForm;

/// Phrases of servers that require text as a message's content (llama-cpp-python, both versions of pydantic,
/// JSON parsers of Go and Rust).
static NO_NULL: Pattern = Pattern::new(
    r"should be a valid string|string_type|none is not an allowed|nonetype|null|expected a string",
);

/// Phrases of servers without tool calls (Ollama, vLLM, llama.cpp, OpenRouter).
static NO_TOOLS: Pattern = Pattern::new(
    r"(?:not|n't|n’t) support (?:tool|function)|support (?:tool use|function calling)|(?:tool|function)s?(?: use| call(?:s|ing)?)? (?:is|are) not (?:supported|enabled|available)|tool choice requires|enable-auto-tool-choice|tool-call-parser|--jinja",
);

/// Words of a refusal for what is not accepted at all.
static NOT_ACCEPTED: Pattern = Pattern::new(
    r"not support|n't support|n’t support|unsupported|not allowed|not permitted|not enabled|not accept|invalid|unknown|unrecognized|unexpected|only|must be one of|deprecated",
);

/// Efforts of reasoning, the smallest first.
const EFFORTS: [&str; 5] = ["none", "minimal", "low", "medium", "high"];

static SYSTEM_ROLE: Pattern = Pattern::new(
    r#"(?:system|developer)['"]?[ _-]?(?:role|message|prompt|instruction)|role[s]?[^.]{0,60}['"]?system|['"]system['"][^.]{0,60}role|messages\[0\]\.role"#,
);
static TOOL_ROLE: Pattern = Pattern::new(
    r#"role['":\s=]{0,4}['"]?tool\b|['"]tool['"] role|tool role|value:? ['"]tool['"]|got tool\b|assistant and system roles are supported"#,
);
static USER_AFTER_TOOL: Pattern = Pattern::new(
    r#"role ['"]?user['"]? after role ['"]?tool|user message[^.]{0,30}after[^.]{0,20}tool"#,
);
static SCHEMA: Pattern = Pattern::new(
    r#"schema|grammar|additionalproperties|anyof|oneof|any_of|unknown name|"\$|\$ref|\$defs|exclusiveminimum|proto field is not repeating"#,
);
static STRICT: Pattern =
    Pattern::new(r"required to be supplied|must be false|strict|every key in properties");

static TOOLS_FIELD: Pattern = Pattern::new(r"\btools\b|\bfunctions are\b");
static STREAM: Pattern = Pattern::new(r"\bstream(?:ing|ed)?\b");

/// An effort that a refusal names without quotes.
static EFFORT: Pattern = Pattern::new(
    r"reasoning[_ .]effort\s*(?:to|=|:|is|must be|should be)?\s*(none|minimal|low|medium|high)\b",
);

/// Words for a field that is expected back.
static MISSING: Pattern = Pattern::new(
    r"missing|required|must be passed|must be provided|must be included|must include|must contain|must not be empty|cannot be empty",
);

/// Words for a field that is not accepted, although others may be missing.
static EXTRA: Pattern = Pattern::new(
    r"not permitted|extra_forbidden|unsupported|not supported|unrecognized|unexpected",
);

static NEEDS_STREAM: Pattern = Pattern::new(
    r"only supports? (?:the )?stream|non-?stream|stream\b[^.]{0,20}(?:must|should|needs to) be (?:set to )?true|(?:requires?|enable|set)(?: the)? \W?stream",
);

/// A refused request, and what was known of the server when it was sent.
struct Refused<'a> {
    capabilities: ServerCapabilities,
    status: u16,
    /// Texts of the refusal in lower case.
    text: String,
    body: &'a Body<'a>,
}

impl Refused<'_> {
    fn says(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    fn says_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.text.contains(words))
    }

    /// Returns whether the refusal is about a field that the service expects back.
    fn is_about_missing(&self) -> bool {
        MISSING.is_match(&self.text) && !EXTRA.is_match(&self.text)
    }

    /// Returns whether the refusal is about this optional field, which was sent.
    fn is_about(&self, field: &str) -> bool {
        matches!(self.status, 400 | 422) && self.body.has(field) && self.says(field)
    }
}

type Rule = fn(&Refused<'_>, &mut ServerCapabilities);

/// Rules in the order in which they are tried. The first that changes anything decides.
const RULES: [Rule; 17] = [
    signature,
    reasoning,
    effort,
    |refused, better| better.usage_in_stream &= !refused.is_about("stream_options"),
    |refused, better| better.parallel_field &= !refused.is_about("parallel_tool_calls"),
    stream,
    tools,
    user_after_tool,
    tool_role,
    system_role,
    alternation,
    null_content,
    extra_fields,
    schemas,
    completion_limit,
    |refused, better| better.temperature &= !refused.is_about("temperature"),
    tools_field,
];

/// Returns the capabilities to use after `refusal` of `body`; `None` if it is not about the request's form.
pub(super) fn without_refused_field(
    capabilities: ServerCapabilities,
    refusal: &Refusal,
    body: &Body<'_>,
) -> Option<ServerCapabilities> {
    if !matches!(refusal.status, 400 | 404 | 405 | 415 | 422 | 500 | 501) {
        return None;
    }
    let refused = Refused {
        capabilities,
        status: refusal.status,
        text: all_text(&refusal.body),
        body,
    };
    RULES.iter().find_map(|rule| {
        let mut better = capabilities;
        rule(&refused, &mut better);
        (better != capabilities).then_some(better)
    })
}

fn describe_tools_in_text(better: &mut ServerCapabilities) {
    better.tools_field = false;
    better.effort = None;
}

/// Sends the effort that the refusal names, or describes the tools in the text.
fn effort(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let fields = ["reasoning_effort", "reasoning effort", "reasoning.effort"];
    let Some(at) = fields.iter().filter_map(|f| refused.text.rfind(f)).max() else {
        return;
    };
    let is_quoted = |text: &str, effort: &str| {
        let quotes = ["'", "\"", "`", "“"];
        quotes
            .iter()
            .any(|q| text.contains(&format!("{q}{effort}")))
    };
    if let Some(tried) = refused.capabilities.effort {
        // The refusal may list higher efforts.
        let not_tried = EFFORTS.into_iter().skip_while(|effort| *effort != tried);
        let mut higher = not_tried.skip(1);
        better.effort = higher.find(|effort| is_quoted(&refused.text, effort));
        better.tools_field = better.effort.is_some();
        return;
    }
    if !refused.body.has("tools") || !refused.says_any(&["tool", "function"]) {
        return;
    }
    let find_quoted = |text: &str| EFFORTS.into_iter().find(|effort| is_quoted(text, effort));
    let unquoted = || {
        let group = EFFORT.captures(&refused.text)?.get(1)?;
        EFFORTS.into_iter().find(|effort| *effort == group.as_str())
    };
    let listed_effort = find_quoted(&refused.text[at..])
        .or_else(unquoted)
        .or_else(|| find_quoted(&refused.text));
    better.effort = Some(listed_effort.unwrap_or("none"));
}

/// Gemini refuses calls that it did not make itself unless they have the signature for such calls.
fn signature(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_named =
        refused.says_any(&["thought_signature", "thoughtsignature", "thought signature"]);
    better.needs_signature |= is_named && refused.is_about_missing();
}

/// Some services expect reasoning in all messages, even in those that came without any.
fn reasoning(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_named = refused.says("reasoning_content") && refused.is_about_missing();
    better.needs_reasoning |= is_named && refused.body.messages.has_role("assistant");
}

fn tools(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    if refused.body.has("tools") && NO_TOOLS.is_match(&refused.text) {
        describe_tools_in_text(better);
    }
}

/// Services without the field call it unknown, in words that may also be about a part of it.
fn tools_field(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_named = TOOLS_FIELD.is_match(&refused.text) && !refused.says("tools[");
    let is_unknown = NOT_ACCEPTED.is_match(&refused.text) || refused.says("extra inputs");
    if refused.body.has("tools") && matches!(refused.status, 400 | 422) && is_named && is_unknown {
        describe_tools_in_text(better);
    }
}

fn system_role(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_named = SYSTEM_ROLE.is_match(&refused.text) && NOT_ACCEPTED.is_match(&refused.text);
    better.system_role &= !(refused.body.messages.has_role("system") && is_named);
}

/// Some chat templates take only users and assistants in turn.
fn alternation(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    if !refused.says_any(&["alternate", "turn comes immediately after"]) {
        return;
    }
    if refused.body.messages.has_role("system") {
        better.system_role = false;
    } else if refused.body.messages.has_role("tool") {
        describe_tools_in_text(better);
    }
}

fn user_after_tool(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    better.user_after_tool &= !USER_AFTER_TOOL.is_match(&refused.text);
}

/// Chat templates without a role for tools need the calls as text.
fn tool_role(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_named = TOOL_ROLE.is_match(&refused.text) && NOT_ACCEPTED.is_match(&refused.text);
    if refused.body.messages.has_role("tool") && is_named {
        describe_tools_in_text(better);
    }
}

fn null_content(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_about_null = refused.says("content") && NO_NULL.is_match(&refused.text);
    better.null_content &= !(refused.body.messages.has_null_content() && is_about_null);
}

fn extra_fields(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_wanted = refused.is_about_missing();
    let names = refused.body.messages.extra_fields();
    better.extra_fields &= is_wanted || !names.iter().any(|name| refused.says(name));
}

fn schemas(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let words = ["function", "tool", "parameters", "declaration", "grammar"];
    let is_about_tools = refused.says_any(&words);
    let is_refused = SCHEMA.is_match(&refused.text) && is_about_tools;
    if !refused.body.has("tools") || !is_refused {
        return;
    }
    match refused.capabilities.schemas {
        SchemaForm::Full if STRICT.is_match(&refused.text) => better.schemas = SchemaForm::Strict,
        SchemaForm::Full => better.schemas = SchemaForm::Simple,
        SchemaForm::Simple | SchemaForm::Strict => better.tools_field = false,
    }
}

fn completion_limit(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_either = refused.says("max_tokens") || refused.says("max_completion_tokens");
    if !matches!(refused.status, 400 | 422) || !is_either {
        return;
    }
    let is_missing = refused.says_any(&["required", "missing", "must be set"]);
    if refused.body.sent_tokens().is_none() {
        better.needs_limit |= is_missing;
        if is_missing && refused.says("max_completion_tokens") {
            better.limit_field = LimitField::MaxCompletionTokens;
        }
    } else if refused.body.has("max_tokens") {
        better.limit_field = match refused.says("max_completion_tokens") {
            true => LimitField::MaxCompletionTokens,
            false => LimitField::None,
        };
    } else if refused.body.has("max_completion_tokens") {
        better.limit_field = LimitField::MaxTokens;
    }
}

fn stream(refused: &Refused<'_>, better: &mut ServerCapabilities) {
    let is_named = STREAM.is_match(&refused.text) && NOT_ACCEPTED.is_match(&refused.text);
    if refused.is_about("stream") && refused.body.is_streamed() && is_named {
        better.stream = false;
    } else if !refused.body.is_streamed() && NEEDS_STREAM.is_match(&refused.text) {
        better.stream = true;
    }
}
