//! Requests and replies in the format of OpenAI's chat completions. Fields that a [`Request`] cannot express are
//! ignored.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use testwright_models::conversation::UNREADABLE;
use testwright_models::{ExtraFields, Message, Reply, Request, ToolCall, ToolResult};
use testwright_tools::tool::ToolSpec;

/// Fields of a reply that a program sends back.
const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// A request for a completion.
pub(super) struct Chat {
    pub(super) request: Request,
    /// Whether the reply should be a stream of events.
    pub(super) stream: bool,
}

#[derive(Deserialize)]
struct Body {
    messages: Vec<ChatMessage>,
    tools: Option<Vec<ChatTool>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    temperature: Option<f64>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct ChatMessage {
    role: String,
    #[serde(default)]
    content: Value,
    tool_calls: Option<Vec<ChatCall>>,
    tool_call_id: Option<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Deserialize)]
struct ChatCall {
    id: String,
    function: ChatFunction,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Deserialize)]
struct ChatFunction {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct ChatTool {
    function: ToolFunction,
}

#[derive(Deserialize)]
struct ToolFunction {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Option<Value>,
}

/// Reads a request. The error is a message for the program.
pub(super) fn read(body: &[u8]) -> Result<Chat, String> {
    let body: Body =
        serde_json::from_slice(body).map_err(|error| format!("the request is invalid: {error}"))?;
    if body.messages.is_empty() {
        return Err("the request has no messages".to_owned());
    }
    let messages = body.messages.into_iter().map(message);
    let tools = match body.tool_choice.as_ref().and_then(Value::as_str) {
        Some("none") => Vec::new(),
        _ => body.tools.unwrap_or_default(),
    };
    let request = Request {
        messages: messages.collect::<Result<_, _>>()?,
        tools: tools.into_iter().map(tool).collect(),
        parallel_calls: body.parallel_tool_calls.unwrap_or(true),
        temperature: body.temperature,
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
    };
    Ok(Chat {
        request,
        stream: body.stream.unwrap_or_default(),
    })
}

fn message(mut message: ChatMessage) -> Result<Message, String> {
    let content = text(&message.content)?;
    Ok(match message.role.as_str() {
        "system" | "developer" => Message::System { content },
        "user" => Message::User { content },
        "assistant" => {
            message.other.retain(|name, value| {
                REASONING_FIELDS.contains(&name.as_str()) && !value.is_null()
            });
            let calls = message.tool_calls.unwrap_or_default();
            Message::Assistant {
                content,
                calls: calls.into_iter().map(call).collect(),
                extra: ExtraFields::from(message.other),
            }
        }
        "tool" => Message::Tool(ToolResult {
            id: message
                .tool_call_id
                .ok_or("a message of a tool has no `tool_call_id`")?,
            content,
        }),
        other => return Err(format!("the role `{other}` is not supported")),
    })
}

/// Returns the text of a message: a string, or a list of texts.
fn text(content: &Value) -> Result<String, String> {
    let part = |part: &Value| {
        let text = part["text"].as_str().map(str::to_owned);
        text.ok_or_else(|| "only texts are supported in messages".to_owned())
    };
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts.iter().map(part).collect(),
        _ => Err("the content of a message must be a text".to_owned()),
    }
}

fn call(mut call: ChatCall) -> ToolCall {
    let text = call.function.arguments;
    let arguments = serde_json::from_str::<Map<String, Value>>(&text).map(Value::Object);
    call.other
        .retain(|name, value| !["type", "index"].contains(&name.as_str()) && !value.is_null());
    ToolCall {
        extra: ExtraFields::from(call.other),
        ..ToolCall::new(
            call.id,
            call.function.name,
            arguments.unwrap_or_else(|_| json!({ UNREADABLE: text })),
        )
    }
}

fn tool(tool: ChatTool) -> ToolSpec {
    let function = tool.function;
    ToolSpec {
        name: function.name,
        description: function.description,
        parameters: function
            .parameters
            .unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
    }
}

/// Returns a reply as the complete answer to a request.
pub(super) fn completion(reply: &Reply, model: &str) -> Value {
    let mut answer = envelope("chat.completion", model);
    answer["choices"] = json!([{
        "index": 0,
        "message": reply_message(reply),
        "finish_reason": reply.finish,
    }]);
    answer["usage"] = usage(reply);
    answer
}

/// Returns a reply as a stream: one event with the message, and one with its end.
pub(super) fn events(reply: &Reply, model: &str) -> String {
    let mut first = envelope("chat.completion.chunk", model);
    let mut delta = reply_message(reply);
    let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        call["index"] = json!(index);
    }
    first["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
    let mut last = envelope("chat.completion.chunk", model);
    last["choices"] = json!([{ "index": 0, "delta": {}, "finish_reason": reply.finish }]);
    last["usage"] = usage(reply);
    format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")
}

fn envelope(object: &str, model: &str) -> Value {
    json!({
        "id": "chatcmpl-testwright",
        "object": object,
        "created": jiff::Timestamp::now().as_second(),
        "model": model,
    })
}

fn reply_message(reply: &Reply) -> Value {
    let call = |id: &str, name: &str, arguments: &str, extra: &ExtraFields| {
        let mut call = json!({
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": arguments },
        });
        for (name, value) in extra.fields() {
            if call.get(&name).is_none() {
                call[name] = value;
            }
        }
        call
    };
    let mut calls: Vec<Value> = (reply.calls.iter())
        .map(|c| call(&c.id, &c.name, c.arguments.as_str(), &c.extra))
        .collect();
    // Calls without an id are part of the text.
    calls.extend(reply.malformed.iter().filter_map(|bad| {
        let name = bad.name.as_deref().unwrap_or("unknown");
        Some(call(bad.id.as_deref()?, name, &bad.text, &bad.extra))
    }));
    let mut message = Value::Object(reply.extra.fields());
    message["role"] = json!("assistant");
    message["content"] = json!(reply.content);
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens.saturating_add(usage.completion_tokens),
        "prompt_tokens_details": { "cached_tokens": usage.cached_tokens },
    })
}

/// Returns the list of models, which has only that of the run.
pub(super) fn models(name: &str) -> Value {
    json!({
        "object": "list",
        "data": [{ "id": name, "object": "model", "created": 0, "owned_by": "testwright" }],
    })
}

/// Returns an error.
pub(super) fn error(message: &str, status: u16) -> Value {
    let kind = match status {
        402 => "insufficient_quota",
        401 => "authentication_error",
        _ => "invalid_request_error",
    };
    json!({ "error": { "message": message, "type": kind, "code": kind } })
}

#[cfg(test)]
mod tests;
