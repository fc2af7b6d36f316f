//! Messages in the provider's format.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::server_capabilities::ServerCapabilities;
use super::text_messages::{non_empty, text_messages};
use crate::{ExtraFields, Message, Request, ToolCall};

/// The messages of a request.
pub(super) enum Messages<'a> {
    /// Serialized one by one, to avoid a second copy of the conversation.
    Native {
        messages: &'a [Message],
        capabilities: ServerCapabilities,
    },
    /// Rewritten for a server that takes fewer roles.
    Rewritten(Vec<Value>),
}

/// Value of the field for reasoning in a message that came without any. Services refuse an empty one.
const NO_REASONING: &str = "(none)";

/// Signature that Google's documentation gives for calls that its model did not make.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl<'a> Messages<'a> {
    pub(super) fn new(request: &'a Request, capabilities: ServerCapabilities) -> Self {
        let messages = &request.messages;
        let is_native = capabilities.tools_field;
        if is_native && capabilities.system_role && capabilities.user_after_tool {
            return Messages::Native {
                messages,
                capabilities,
            };
        }
        let mut rewritten = match is_native {
            true => turns(messages)
                .map(|turn| message(&turn, &capabilities))
                .collect(),
            false => text_messages(request),
        };
        if !capabilities.user_after_tool {
            rewritten = with_remarks_in_answers(rewritten);
        }
        if !capabilities.system_role {
            rewritten = without_system(rewritten);
        }
        Messages::Rewritten(rewritten)
    }

    /// Returns whether a message with calls but no text has its content as null.
    pub(super) fn has_null_content(&self) -> bool {
        let Messages::Native {
            messages,
            capabilities,
        } = self
        else {
            return false;
        };
        capabilities.null_content
            && messages.iter().any(|message| {
                matches!(message, Message::Assistant { content, calls, .. } if content.is_empty() && !calls.is_empty())
            })
    }

    /// Returns whether a message has this role.
    pub(super) fn has_role(&self, role: &str) -> bool {
        match self {
            Messages::Native { messages, .. } => messages.iter().any(|message| {
                let own = match message {
                    Message::System { .. } => "system",
                    Message::User { .. } => "user",
                    Message::Assistant { .. } => "assistant",
                    Message::Tool(_) => "tool",
                };
                own == role
            }),
            Messages::Rewritten(messages) => messages.iter().any(|m| m["role"] == role),
        }
    }

    /// Returns the names of the extra fields that are sent back.
    pub(super) fn extra_fields(&self) -> Vec<String> {
        let messages = match self {
            Messages::Native {
                messages,
                capabilities,
            } if capabilities.extra_fields => *messages,
            _ => &[],
        };
        let mut names: Vec<String> = messages
            .iter()
            .filter_map(|message| match message {
                Message::Assistant { calls, extra, .. } => Some((calls, extra)),
                _ => None,
            })
            .flat_map(|(calls, extra)| calls.iter().map(|call| &call.extra).chain([extra]))
            .flat_map(|extra| extra.fields().into_iter().map(|(name, _)| name))
            .filter(|name| name != "function")
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Messages::Native {
                messages,
                capabilities,
            } => serializer.collect_seq(turns(messages).map(|turn| message(&turn, capabilities))),
            Messages::Rewritten(messages) => messages.serialize(serializer),
        }
    }
}

/// Returns the messages, with consecutive user messages joined, because some chat templates require
/// alternating roles.
fn turns(messages: &[Message]) -> impl Iterator<Item = Cow<'_, Message>> {
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    let turns = messages.chunk_by(move |a, b| is_user(a) && is_user(b));
    turns.filter_map(|turn| match turn {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        adjacent_messages => {
            let texts: Vec<&str> = adjacent_messages
                .iter()
                .filter_map(|message| match message {
                    Message::User { content } => Some(content.as_str()),
                    _ => None,
                })
                .collect();
            let content = texts.join("\n\n");
            Some(Cow::Owned(Message::User { content }))
        }
    })
}

fn message(message: &Message, capabilities: &ServerCapabilities) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Assistant {
            content,
            calls,
            extra,
        } => {
            let content = match (calls.is_empty(), content.as_str()) {
                (true, text) => json!(non_empty(text)),
                (false, "") if capabilities.null_content => Value::Null,
                (false, text) => json!(text),
            };
            let mut message = json!({ "role": "assistant", "content": content });
            if !calls.is_empty() {
                let calls = calls.iter().map(|call| native_call(call, capabilities));
                let mut calls: Vec<Value> = calls.collect();
                // Only the first of several parallel calls has a signature.
                if let Some(first) = calls.first_mut().filter(|_| capabilities.needs_signature) {
                    add_signature(first);
                }
                message["tool_calls"] = calls.into();
            } else if !capabilities.needs_reasoning {
                return message;
            }
            let message = with_extra(message, extra, capabilities);
            match capabilities.needs_reasoning {
                true => with_reasoning(message),
                false => message,
            }
        }
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_call_id": result.id,
            "content": result.content,
        }),
    }
}

fn native_call(call: &ToolCall, capabilities: &ServerCapabilities) -> Value {
    let value = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": safe_name(&call.name), "arguments": call.arguments.as_str() },
    });
    with_extra(value, &call.extra, capabilities)
}

/// Adds fields that the service sent, without changing those that are there.
fn with_extra(mut value: Value, extra: &ExtraFields, capabilities: &ServerCapabilities) -> Value {
    if capabilities.extra_fields
        && !extra.is_empty()
        && let Some(fields) = value.as_object_mut()
    {
        add_missing(fields, extra.fields());
    }
    value
}

/// Adds the field for reasoning, with what the service sent under another name.
fn with_reasoning(mut message: Value) -> Value {
    let is_text = |value: &&Value| value.as_str().is_some_and(|text| !text.is_empty());
    let keys = ["reasoning_content", "reasoning", "thinking"];
    let mut texts = keys.iter().filter_map(|key| message.get(*key));
    let reasoning = texts.find(is_text).cloned();
    message["reasoning_content"] = reasoning.unwrap_or_else(|| NO_REASONING.into());
    message
}

/// Adds a signature to a call without one.
fn add_signature(call: &mut Value) {
    let is_signed = call.to_string().contains("thought_signature");
    let signature = json!({ "google": { "thought_signature": NO_SIGNATURE } });
    if let Some(fields) = call.as_object_mut().filter(|_| !is_signed) {
        add_missing(
            fields,
            Map::from_iter([("extra_content".to_owned(), signature)]),
        );
    }
}

fn add_missing(fields: &mut Map<String, Value>, extra: Map<String, Value>) {
    for (key, value) in extra {
        match (fields.get_mut(&key), value) {
            (None, value) => {
                fields.insert(key, value);
            }
            (Some(Value::Object(inner)), Value::Object(more)) => add_missing(inner, more),
            (Some(_), _) => {}
        }
    }
}

/// Returns a valid function name: at most 64 letters, digits, `_` and `-`.
fn safe_name(name: &str) -> String {
    let start: String = name.chars().take(64).collect();
    match start.is_empty() {
        true => "unknown".to_owned(),
        false => start.replace(
            |c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c),
            "_",
        ),
    }
}

/// Moves the text of system messages to the start of the first user message.
fn without_system(messages: Vec<Value>) -> Vec<Value> {
    let (system, mut others): (Vec<Value>, Vec<Value>) =
        messages.into_iter().partition(|m| m["role"] == "system");
    let texts = system.iter().filter_map(|m| m["content"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n\n");
    if text.is_empty() {
        return others;
    }
    match others.first_mut().filter(|first| first["role"] == "user") {
        Some(first) => append(first, &text, true),
        None => others.insert(0, json!({ "role": "user", "content": text })),
    }
    others
}

/// Appends user messages that follow a tool message to that message.
fn with_remarks_in_answers(messages: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        match joined.last_mut() {
            Some(last) if last["role"] == "tool" && message["role"] == "user" => {
                append(last, message["content"].as_str().unwrap_or_default(), false);
            }
            _ => joined.push(message),
        }
    }
    joined
}

fn append(message: &mut Value, text: &str, is_before: bool) {
    let own = message["content"].as_str().unwrap_or_default();
    let content = match is_before {
        true => format!("{text}\n\n{own}"),
        false => format!("{own}\n\n{text}"),
    };
    message["content"] = Value::String(content);
}
