//! A model service that takes seconds to write a test, so that tests can act meanwhile.

use serde_json::{Value, json};

use super::client::StreamEvent;
use super::issue;
use crate::support::server::{MockServer, Request, Response};

const SLOW: &str = "import time; time.sleep(5); print('slept')";

/// Starts a model service whose next reply depends only on the earlier messages.
pub(super) fn model() -> MockServer {
    MockServer::start(|request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let turn = messages.iter().filter(|m| m["role"] == "assistant").count();
        let test = "def test_cut():\n    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
        let call = |name: &str, arguments: Value| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            json!([{"id": format!("call{turn}"), "type": "function", "function": function}])
        };
        let message = match turn {
            _ if body["tools"].is_null() => json!({"content": "YES\nThe same wrong value."}),
            0 => {
                json!({"tool_calls": call("insert_function", json!({"path": "tests/test_slug.py", "code": test}))})
            }
            1 => json!({"tool_calls": call("run_python", json!({"code": SLOW}))}),
            2 => json!({"tool_calls": call("submit", json!({"reason": "I expected 'how-to'."}))}),
            _ => {
                json!({"tool_calls": call("submit", json!({"reason": "It is the issue's own call."}))})
            }
        };
        let finish = if message["tool_calls"].is_null() {
            "stop"
        } else {
            "tool_calls"
        };
        let mut message = message;
        message["role"] = json!("assistant");
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
        }))
        .with("content-type", "application/json")
    })
}

pub(super) fn slow_issue() -> Value {
    let mut request = issue();
    request["approach"] = json!("testwright");
    request["model"] = json!("m");
    request
}

pub(super) fn is_slow_step(event: &StreamEvent) -> bool {
    event.data.contains("time.sleep(5)")
}
