#![allow(clippy::unwrap_used, clippy::expect_used)]

mod extra_fields;
mod failures;
mod limits;
mod refused_forms;
mod replies;
mod requests;
mod security;
mod server;
mod settings;
mod streams;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use server::{Act, Server};
use testwright_tools::tool::ToolSpec;

use super::*;
use crate::retry::Retry;
use crate::{ExtraFields, Finish, Message, ToolCall, ToolResult};

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}),
    }
}

fn request() -> Request {
    Request {
        messages: vec![
            Message::System {
                content: "You write tests.".to_owned(),
            },
            Message::User {
                content: "Go.".to_owned(),
            },
        ],
        tools: vec![spec("search"), spec("open_file")],
        parallel_calls: true,
        temperature: None,
        max_tokens: None,
    }
}

fn settings(server: &Server, stream: bool) -> OpenAiSettings {
    OpenAiSettings {
        base_url: server.url.clone(),
        stream,
        timeout: Duration::from_secs(20),
        ..OpenAiSettings::new("m")
    }
}

fn client(server: &Server, stream: bool) -> OpenAi {
    OpenAi::new(settings(server, stream)).unwrap()
}

fn build_completion(message: Value, finish: &str) -> Value {
    json!({
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
                  "prompt_tokens_details": {"cached_tokens": 64}},
    })
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(finish: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
}

fn fragment(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    delta(json!({"tool_calls": [call]}))
}

fn names(reply: &Reply) -> Vec<(&str, &str, String)> {
    reply
        .calls
        .iter()
        .map(|c| {
            (
                c.id.as_str(),
                c.name.as_str(),
                c.arguments.as_str().to_owned(),
            )
        })
        .collect()
}

/// Returns one answer of a server that does not stream.
async fn answer_to(act: Act) -> Result<Reply, ModelError> {
    let server = Server::new(vec![act]).await;
    client(&server, false).complete(&request()).await
}

async fn streamed(events: &[Value]) -> Result<Reply, ModelError> {
    let server = Server::new(vec![Act::stream(events)]).await;
    client(&server, true).complete(&request()).await
}
