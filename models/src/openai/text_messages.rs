//! Conversations without tool fields, for servers that do not take them.

use serde_json::{Value, json};

use crate::{Message, Request, ToolCall};

/// Returns the conversation without tool fields: the system message describes the tools, and calls and
/// results are text. Consecutive messages of the same role are joined, because some chat templates require
/// alternating roles.
pub(super) fn text_messages(request: &Request) -> Vec<Value> {
    let mut messages: Vec<(&str, String)> = Vec::new();
    if !request.tools.is_empty() {
        messages.push(("system", description(request)));
    }
    for message in &request.messages {
        let (role, text) = match message {
            Message::System { content } => ("system", content.clone()),
            Message::User { content } => ("user", content.clone()),
            Message::Assistant { content, calls, .. } => ("assistant", with_calls(content, calls)),
            Message::Tool(result) => (
                "user",
                format!("<tool_response>\n{}\n</tool_response>", result.content),
            ),
        };
        match messages.last_mut() {
            // The task's own text comes before the description of the tools.
            Some(("system", before)) if role == "system" && before.starts_with(HEADING) => {
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
    let content = match calls {
        [] => non_empty(content),
        _ => content,
    };
    let calls = calls.iter().map(|call| {
        let call = json!({ "name": call.name, "arguments": call.arguments });
        format!("<tool_call>\n{call}\n</tool_call>")
    });
    let content = Some(content.to_owned()).filter(|text| !text.is_empty());
    content
        .into_iter()
        .chain(calls)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Replaces empty text, because servers refuse an empty assistant message.
pub(super) fn non_empty(content: &str) -> &str {
    if content.trim().is_empty() {
        "(nothing)"
    } else {
        content
    }
}
