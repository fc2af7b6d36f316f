//! Requests in the provider's format.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use testwright_tools::tool::ToolSpec;

use super::OpenAiSettings;
use super::server_capabilities::ServerCapabilities;
use crate::{Message, Request, ToolCall};

/// A request in the provider's format. Messages are serialised one by one, to avoid a second copy of the
/// conversation.
pub(super) struct Body<'a> {
    fields: Map<String, Value>,
    messages: Messages<'a>,
}

enum Messages<'a> {
    Native {
        messages: &'a [Message],
        null_content: bool,
    },
    Text(Vec<Value>),
}

impl Body<'_> {
    /// Returns whether this field was sent.
    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// Returns whether a message with calls but no text had its content sent as null.
    pub(super) fn has_null_content(&self) -> bool {
        let Messages::Native {
            messages,
            null_content: true,
        } = &self.messages
        else {
            return false;
        };
        messages.iter().any(|message| {
            matches!(message, Message::Assistant { content, calls } if content.is_empty() && !calls.is_empty())
        })
    }

    /// Returns the characters of messages and tools, to estimate tokens.
    pub(super) fn prompt_length(&self) -> usize {
        let length = |json: serde_json::Result<String>| json.map_or(0, |text| text.len());
        let tools = self.fields.get("tools").unwrap_or(&Value::Null);
        length(serde_json::to_string(&self.messages)) + length(serde_json::to_string(tools))
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'a, 'b> {
            messages: &'a Messages<'b>,
            #[serde(flatten)]
            fields: &'a Map<String, Value>,
        }
        let whole = Whole {
            messages: &self.messages,
            fields: &self.fields,
        };
        whole.serialize(serializer)
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Messages::Native {
                messages,
                null_content,
            } => serializer.collect_seq(turns(messages).map(|turn| message(&turn, *null_content))),
            Messages::Text(messages) => messages.serialize(serializer),
        }
    }
}

pub(super) fn body<'a>(
    request: &'a Request,
    settings: &OpenAiSettings,
    capabilities: ServerCapabilities,
) -> Body<'a> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(settings.model));
    let in_text = !capabilities.tools_field;
    let messages = if in_text {
        Messages::Text(text_messages(request))
    } else {
        Messages::Native {
            messages: &request.messages,
            null_content: capabilities.null_content,
        }
    };
    if !in_text && !request.tools.is_empty() {
        let tools = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), Value::Array(tools));
        // By default, every server allows several calls in a reply, and reasoning models refuse the field.
        if !request.parallel_calls && capabilities.parallel_field {
            body.insert("parallel_tool_calls".to_owned(), json!(false));
        }
    }
    if let (Some(temperature), true) = (
        request.temperature.or(settings.temperature),
        capabilities.temperature,
    ) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(most) = request.max_tokens.or(settings.max_tokens) {
        let field = if capabilities.completion_limit {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body.insert(field.to_owned(), json!(most));
    }
    for (field, value) in &settings.extra {
        body.insert(field.clone(), value.clone());
    }
    // Settings cannot override this field: the reply is read accordingly.
    body.insert("stream".to_owned(), json!(settings.stream));
    if settings.stream && capabilities.usage_in_stream {
        body.insert(
            "stream_options".to_owned(),
            json!({ "include_usage": true }),
        );
    }
    Body {
        fields: body,
        messages,
    }
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        }
    })
}

/// Returns the messages, with consecutive user messages joined, because some chat templates require
/// alternating roles.
fn turns(messages: &[Message]) -> impl Iterator<Item = Cow<'_, Message>> {
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    let turns = messages.chunk_by(move |a, b| is_user(a) && is_user(b));
    turns.filter_map(|turn| match turn {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        said => {
            let texts: Vec<&str> = said
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

fn message(message: &Message, null_content: bool) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Assistant { content, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": non_empty(content) })
        }
        Message::Assistant { content, calls } => {
            let content = if content.is_empty() && null_content {
                Value::Null
            } else {
                json!(content)
            };
            let calls: Vec<Value> = calls.iter().map(native_call).collect();
            json!({ "role": "assistant", "content": content, "tool_calls": calls })
        }
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_call_id": result.id,
            "content": result.content,
        }),
    }
}

/// Replaces empty text, because servers refuse an empty assistant message.
fn non_empty(content: &str) -> &str {
    if content.trim().is_empty() {
        "(nothing)"
    } else {
        content
    }
}

fn native_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": safe_name(&call.name), "arguments": call.arguments.as_str() },
    })
}

/// Returns a valid function name: at most 64 letters, digits, `_` and `-`.
fn safe_name(name: &str) -> String {
    let safe: String = name
        .chars()
        .take(64)
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if safe.is_empty() {
        "unknown".to_owned()
    } else {
        safe
    }
}

/// Returns the conversation without tool fields: the system message describes the tools, and calls and
/// results are text. Consecutive messages of the same role are joined, because some chat templates require
/// alternating roles.
fn text_messages(request: &Request) -> Vec<Value> {
    let mut messages: Vec<(&str, String)> = Vec::new();
    if !request.tools.is_empty() {
        messages.push(("system", description(request)));
    }
    for message in &request.messages {
        let (role, text) = match message {
            Message::System { content } => ("system", content.clone()),
            Message::User { content } => ("user", content.clone()),
            Message::Assistant { content, calls } => ("assistant", with_calls(content, calls)),
            Message::Tool(result) => (
                "user",
                format!("<tool_response>\n{}\n</tool_response>", result.content),
            ),
        };
        match messages.last_mut() {
            // The task's own text comes before the description of the tools.
            Some((last, before))
                if *last == role && role == "system" && messages_are_first(before) =>
            {
                *before = format!("{text}\n\n{before}");
            }
            Some((last, before)) if *last == role => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            _ => messages.push((role, text)),
        }
    }
    messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn messages_are_first(before: &str) -> bool {
    before.starts_with(HEADING)
}

const HEADING: &str = "# Tools";

fn description(request: &Request) -> String {
    let mut text = format!(
        "{HEADING}\n\nTo call a tool, write a block of this form in your reply:\n\n<tool_call>\n{{\"name\": \"the tool\", \"arguments\": {{\"a parameter\": \"its value\"}}}}\n</tool_call>\n\n"
    );
    text.push_str(if request.parallel_calls {
        "Several blocks in a reply are several calls. "
    } else {
        "Write one block in a reply. "
    });
    text.push_str(
        "The answers come in the next message, in <tool_response> tags; never write these yourself. The tools, with the JSON schema of their arguments:\n",
    );
    for tool in &request.tools {
        let line = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        });
        text.push('\n');
        text.push_str(&line.to_string());
    }
    text
}

fn with_calls(content: &str, calls: &[ToolCall]) -> String {
    let mut text = if calls.is_empty() {
        non_empty(content).to_owned()
    } else {
        content.to_owned()
    };
    for call in calls {
        if !text.is_empty() {
            text.push('\n');
        }
        let call = json!({ "name": call.name, "arguments": call.arguments });
        text.push_str(&format!("<tool_call>\n{call}\n</tool_call>"));
    }
    text
}
