//! Runs in which the model makes no progress end early, with the reason.

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code};
use crate::support::server::{MockServer, Request, Response};

/// Runs the example with a service whose reply depends on the number of earlier replies. Returns the record of
/// the run and the last conversation.
fn run(reply: fn(usize) -> (Value, &'static str)) -> (Value, String) {
    let place = TestDir::new();
    let server = MockServer::start(move |request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let said = messages.iter().filter(|m| m["role"] == "assistant").count();
        let (mut message, finish) = reply(said);
        message["role"] = json!("assistant");
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 10},
        }))
        .with("content-type", "application/json")
    });
    let output = place
        .run_example(&["--model", "m", "--approach", "testwright"])
        .env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", server.url))
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let conversation = std::fs::read_to_string(place.path("out/trajectory.jsonl")).unwrap();
    (place.json("run.json"), conversation)
}

fn call(said: usize, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    json!({"content": null, "tool_calls": [{"id": format!("call{said}"), "type": "function", "function": function}]})
}

#[test]
fn loops_end_after_one_warning() {
    type Reply = fn(usize) -> (Value, &'static str);
    let cases: [(Reply, &str, u64); 4] = [
        (
            |said| {
                (
                    call(said, "search", "{\"pattern\": \"slug\"}"),
                    "tool_calls",
                )
            },
            "the same calls got the same answers",
            6,
        ),
        (
            |said| {
                let pattern = ["slug", "max"][said % 2];
                let arguments = json!({"pattern": pattern}).to_string();
                (call(said, "search", &arguments), "tool_calls")
            },
            "the same calls got the same answers",
            7,
        ),
        (
            |said| {
                (
                    call(said, "search", "{\"pattern\": def slug}"),
                    "tool_calls",
                )
            },
            "no tool call could be read",
            6,
        ),
        (
            |said| {
                let arguments = format!("{{\"pattern\": \"{}", "x".repeat(said));
                (call(said, "search", &arguments), "length")
            },
            "raise `max-tokens` in [model]",
            6,
        ),
    ];
    for (reply, reason, steps) in cases {
        let (record, conversation) = run(reply);
        let told = record["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
        assert_eq!(record["usage"]["steps"], steps, "{told}");
        let warnings = conversation.matches("Do something else").count();
        assert_eq!(warnings, 1, "{told}");
    }
}

#[test]
fn reply_cut_before_any_call_is_named() {
    let thoughts = |_| {
        let message = json!({"content": "", "reasoning_content": "I think, and think."});
        (message, "length")
    };
    let (record, conversation) = run(thoughts);
    let told = record["reason"].as_str().unwrap();
    assert!(told.contains("token limit before any tool call"), "{told}");
    assert!(conversation.contains("Your reply reached its token limit"));
    assert!(!conversation.contains("held no tool call"));
}
