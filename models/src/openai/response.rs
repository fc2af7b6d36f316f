//! Conversion of a provider's reply.

use std::collections::HashSet;

use async_openai::error::OpenAIError;
use serde_json::{Map, Value, json};
use testwright_sandboxes::Pattern;

use super::endpoint::{OTHER_API, Refusal};
use super::error_text::message_in;
use super::extra_fields;
use super::fault;
use super::reply_errors::{error_in, error_in_choice, service_error};
use super::request::Body;
use crate::text_calls::parse_call::ParsedCall;
use crate::text_calls::{self, Scan, TextCalls, cut};
use crate::{Finish, MalformedCall, Message, Reply, Request, ToolCall, Usage};
use testwright_config::settings::Redactor;

/// A reply as received, from a stream or as a whole.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Raw {
    pub(super) content: String,
    pub(super) calls: Vec<RawCall>,
    /// Further fields that the service expects back.
    pub(super) extra: Map<String, Value>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Value>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct RawCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Further fields that the service expects back.
    pub(super) extra: Map<String, Value>,
}

impl Raw {
    /// Returns whether the model wrote nothing, not even a token that the service counts.
    pub(super) fn is_empty(&self) -> bool {
        let tokens = self.usage.as_ref().and_then(reported);
        self.content.trim().is_empty()
            && self.calls.is_empty()
            && self.extra.is_empty()
            && !matches!(
                finish_of(self.finish.as_deref()),
                Finish::Length | Finish::ContentFilter
            )
            && tokens.is_none_or(|usage| usage.completion_tokens == 0)
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        redactor.clean(&mut self.content);
        redact_fields(&mut self.extra, redactor);
        for call in &mut self.calls {
            redact_fields(&mut call.extra, redactor);
            let texts = [&mut call.id, &mut call.name, &mut call.arguments];
            texts.into_iter().for_each(|text| redactor.clean(text));
        }
    }
}

fn redact_fields(fields: &mut Map<String, Value>, redactor: &Redactor) {
    let mut value = Value::Object(std::mem::take(fields));
    redactor.json(&mut value);
    if let Value::Object(cleaned) = value {
        *fields = cleaned;
    }
}

/// Reads a complete reply.
pub(super) fn raw(body: &Value) -> Result<Raw, OpenAIError> {
    error_in(body)?;
    if is_other_api(body) {
        return Err(fault(200, OTHER_API, body.to_string()));
    }
    let Some(choice) = body.pointer("/choices/0") else {
        if message_in(&body.to_string()).is_some() {
            return Err(service_error(body, 500));
        }
        return Err(fault(502, "the reply has no choice", body.to_string()));
    };
    error_in_choice(choice)?;
    let Some(message) = choice.get("message").filter(|m| m.is_object()) else {
        return Err(fault(502, "the reply has no message", body.to_string()));
    };
    let mut raw = Raw {
        content: text_of(message),
        finish: text(choice, "finish_reason"),
        usage: usage_in(body).cloned(),
        ..Raw::default()
    };
    extra_fields::add_of_message(&mut raw.extra, message);
    match message.get("tool_calls").and_then(Value::as_array) {
        Some(calls) if !calls.is_empty() => {
            raw.calls = calls.iter().map(call).collect();
        }
        // The function-call protocol that preceded tools.
        _ => {
            if let Some(function) = message.get("function_call").filter(|f| f.is_object()) {
                raw.calls.push(call(&json!({ "function": function })));
            }
        }
    }
    Ok(raw)
}

/// Returns whether a body is JSON of something else than a model, or a gateway's own message.
fn is_other_api(body: &Value) -> bool {
    const KNOWN: [&str; 11] = [
        "choices",
        "error",
        "errors",
        "error_msg",
        "message",
        "msg",
        "detail",
        "code",
        "status",
        "object",
        "usage",
    ];
    match body.as_object() {
        Some(fields) => !fields.is_empty() && !KNOWN.iter().any(|key| fields.contains_key(*key)),
        None => true,
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    Some(value.get(key)?.as_str()?.to_owned())
}

/// Returns the text of a message or delta: a string, or a list of parts.
pub(super) fn text_of(message: &Value) -> String {
    let content = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|p| p.get("text").and_then(Value::as_str).or(p.as_str()))
            .collect(),
        _ => String::new(),
    };
    if content.is_empty() {
        text(message, "refusal").unwrap_or_default()
    } else {
        content
    }
}

fn call(value: &Value) -> RawCall {
    let function = value.get("function").unwrap_or(value);
    let mut extra = Map::new();
    extra_fields::add_of_call(&mut extra, value);
    RawCall {
        extra,
        id: text(value, "id").unwrap_or_default(),
        name: text(function, "name").unwrap_or_default(),
        arguments: arguments(function),
    }
}

/// Returns the arguments as text; some servers send the object itself.
pub(super) fn arguments(function: &Value) -> String {
    match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Returns the usage from any place where servers put it: next to the choices, in a choice, or in an
/// extension.
pub(super) fn usage_in(body: &Value) -> Option<&Value> {
    ["/usage", "/choices/0/usage", "/x_groq/usage"]
        .iter()
        .filter_map(|path| body.pointer(path))
        .find(|usage| usage.is_object())
}

fn finish_of(finish: Option<&str>) -> Finish {
    static LENGTH: Pattern =
        Pattern::new("length|truncat|max_?token|max_output|token_limit|incomplete");
    static FILTERED: Pattern =
        Pattern::new("filter|safety|sensitive|recitation|prohibited|guardrail");
    let finish = finish.unwrap_or_default().to_lowercase();
    if LENGTH.is_match(&finish) {
        Finish::Length
    } else if FILTERED.is_match(&finish) {
        Finish::ContentFilter
    } else {
        Finish::Stop
    }
}

/// Reads a reply that the service refused to pass on, because it could not parse the call in it (Groq), or
/// because it reached its limit before any text (OpenAI).
pub(super) fn refused_reply(refusal: &Refusal) -> Option<Raw> {
    let body: Value = serde_json::from_str(&refusal.body).ok()?;
    if refusal
        .body
        .contains("Could not finish the message because max_tokens")
    {
        return Some(Raw {
            finish: Some("length".to_owned()),
            ..Raw::default()
        });
    }
    let content = body.pointer("/error/failed_generation")?.as_str()?;
    (!content.trim().is_empty()).then(|| Raw {
        content: content.to_owned(),
        ..Raw::default()
    })
}

/// Converts the reply. `body` is the request, which serves to estimate the usage if none was reported.
pub(super) fn reply(raw: Raw, body: &Body<'_>, request: &Request) -> Reply {
    let mut finish = finish_of(raw.finish.as_deref());
    let usage = usage(&raw, body);
    // Some servers report any end as "stop".
    let limit = body.sent_tokens().filter(|_| !usage.estimated);
    let is_used_up = limit.is_some_and(|limit| usage.completion_tokens >= limit);
    if finish == Finish::Stop && raw.calls.is_empty() && is_used_up {
        finish = Finish::Length;
    }
    let whole = finish != Finish::Length;
    let mut ids = Ids::new(request);
    let in_text = raw
        .calls
        .is_empty()
        .then(|| read_text(&raw, request, whole));
    let mut reply = Reply {
        usage,
        extra: raw.extra.into(),
        ..Reply::default()
    };
    let mut content = raw.content;
    if let Some(parsed_calls) = in_text {
        content = parsed_calls.content;
        for (name, arguments) in parsed_calls.calls {
            let call = ToolCall::new(ids.unique(""), name, Value::Object(arguments));
            reply.calls.push(call);
        }
        reply.malformed = parsed_calls.malformed;
    }
    let scan = Scan {
        tools: &request.tools,
        whole,
    };
    for call in raw.calls {
        native(call, &scan, &mut ids, &mut content, &mut reply);
    }
    reply.content = content;
    if finish == Finish::Stop && !(reply.calls.is_empty() && reply.malformed.is_empty()) {
        finish = Finish::ToolCalls;
    }
    reply.finish = finish;
    reply
}

/// Reads calls that are written as text. If there is nothing but reasoning, a call may be at its end: the
/// model did not end its reasoning before, so the server took the call for a part of it.
fn read_text(raw: &Raw, request: &Request, whole: bool) -> TextCalls {
    const KEYS: [&str; 2] = ["reasoning_content", "reasoning"];
    if raw.content.trim().is_empty()
        && let Some(thought) = KEYS.iter().find_map(|key| raw.extra.get(*key)?.as_str())
        && let Some(calls) = text_calls::read_thought(thought, &request.tools, whole)
    {
        return TextCalls {
            content: String::new(),
            ..calls
        };
    }
    text_calls::read(&raw.content, &request.tools, whole)
}

/// Returns the calls in `multi_tool_use.parallel`, a wrapper that GPT models know from their training.
fn wrapped_calls(call: &RawCall, scan: &Scan<'_>) -> Option<Vec<(String, Value)>> {
    if !call.arguments.contains("\"tool_uses\"") || scan.has_tool(&call.name) {
        return None;
    }
    let wrapper: Value = serde_json::from_str(&call.arguments).ok()?;
    let scan = Scan {
        whole: true,
        ..*scan
    };
    let mut pieces = Vec::new();
    scan.collect(&wrapper, true, &mut pieces);
    let calls = pieces.into_iter().map(|piece| match piece {
        ParsedCall::Call { name, arguments } => Some((name, Value::Object(arguments))),
        _ => None,
    });
    calls.collect()
}

fn native(call: RawCall, scan: &Scan<'_>, ids: &mut Ids, content: &mut String, reply: &mut Reply) {
    if call.name.trim().is_empty() {
        // A history cannot contain a call without a name, so it becomes text.
        let text = format!("(a tool call without a name: {})", cut(&call.arguments));
        if !content.is_empty() {
            content.push('\n');
        }
        content.push_str(&text);
        reply.malformed.push(MalformedCall {
            text: cut(&call.arguments),
            problem: "the call names no tool".to_owned(),
            ..MalformedCall::default()
        });
        return;
    }
    if let Some(calls) = wrapped_calls(&call, scan) {
        let calls = calls.into_iter();
        let calls = calls.map(|(name, arguments)| ToolCall::new(ids.unique(""), name, arguments));
        reply.calls.extend(calls);
        return;
    }
    let id = ids.unique(&call.id);
    let arguments = Value::String(call.arguments.clone());
    match scan.call(&call.name, arguments) {
        ParsedCall::Call { name, arguments } => reply.calls.push(ToolCall {
            id,
            name,
            arguments: Value::Object(arguments).into(),
            extra: call.extra.into(),
        }),
        ParsedCall::Malformed { problem, .. } => reply.malformed.push(MalformedCall {
            id: Some(id),
            name: Some(call.name),
            text: cut(&call.arguments),
            problem,
            extra: call.extra.into(),
        }),
        ParsedCall::Other => {}
    }
}

/// Ids that are unique in a conversation, whatever the server sends.
struct Ids {
    taken: HashSet<String>,
    messages: usize,
    next: usize,
}

impl Ids {
    fn new(request: &Request) -> Self {
        let taken = request
            .messages
            .iter()
            .filter_map(|m| match m {
                Message::Assistant { calls, .. } => Some(calls),
                _ => None,
            })
            .flatten()
            .map(|c| c.id.clone())
            .collect();
        Ids {
            taken,
            messages: request.messages.len(),
            next: 0,
        }
    }

    /// Returns `id` if it is usable, or otherwise a new one: nine letters and digits, as Mistral requires.
    fn unique(&mut self, id: &str) -> String {
        let mut id = id.trim().to_owned();
        while id.is_empty() || !self.taken.insert(id.clone()) {
            // After a thousand calls the id gets longer, so none is repeated.
            id = format!("tw{:04}{:03}", self.messages % 10_000, self.next);
            self.next += 1;
        }
        id
    }
}

fn usage(raw: &Raw, body: &Body<'_>) -> Usage {
    let reported = raw.usage.as_ref().and_then(reported);
    reported.unwrap_or_else(|| {
        let written: usize = raw
            .calls
            .iter()
            .map(|c| c.name.len() + c.arguments.len())
            .sum();
        Usage {
            prompt_tokens: body.prompt_length.div_ceil(4),
            completion_tokens: ((raw.content.len() + written) as u64).div_ceil(4),
            estimated: true,
            ..Usage::default()
        }
    })
}

fn reported(usage: &Value) -> Option<Usage> {
    let number = |paths: &[&str]| {
        paths
            .iter()
            .find_map(|path| usage.pointer(path)?.as_f64())
            .map(|n| n.max(0.0) as u64)
    };
    let prompt = number(&["/prompt_tokens", "/input_tokens", "/prompt_eval_count"]).unwrap_or(0);
    let completion = number(&["/completion_tokens", "/output_tokens", "/eval_count"]).unwrap_or(0);
    if prompt == 0 && completion == 0 {
        return None;
    }
    let cached = number(&[
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cache_read_input_tokens",
        "/cached_tokens",
    ])
    .unwrap_or(0);
    // In Anthropic's own counts, prompt tokens do not include cached ones.
    let apart = usage.get("prompt_tokens_details").is_none()
        && usage.get("cache_read_input_tokens").is_some()
        && cached > prompt;
    let prompt = prompt.saturating_add(if apart { cached } else { 0 });
    Some(Usage {
        prompt_tokens: prompt,
        cached_tokens: cached.min(prompt),
        completion_tokens: completion,
        ..Usage::default()
    })
}
