#![allow(clippy::unwrap_used)]
use super::*;
use testwright_models::Finish;

#[test]
fn requests_keep_messages_tools_and_limits() {
    let body = json!({
        "model": "other", "temperature": 0.5, "max_tokens": 100, "stop": ["x"],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "reasoning_content": "r", "audio": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}},
                {"id": "2", "type": "function", "function": {"name": "bash", "arguments": "{"}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "t"},
        ],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
    });
    let chat = read(body.to_string().as_bytes()).unwrap();
    let request = chat.request;
    assert!(!chat.stream && request.parallel_calls);
    assert_eq!(
        (request.temperature, request.max_tokens),
        (Some(0.5), Some(100))
    );
    assert_eq!(request.tools[0].name, "bash");
    let user = Message::User {
        content: "ab".to_owned(),
    };
    assert_eq!(request.messages[1], user);
    let Message::Assistant { calls, extra, .. } = &request.messages[2] else {
        panic!("{:?}", request.messages[2]);
    };
    assert_eq!(calls[0].arguments, json!({"command": "ls"}));
    assert_eq!(calls[1].arguments, json!({ UNREADABLE: "{" }));
    assert_eq!(
        extra.fields().keys().collect::<Vec<_>>(),
        ["reasoning_content"]
    );
}

#[test]
fn unsupported_requests_are_rejected() {
    for body in [
        json!({"messages": []}),
        json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        json!({"messages": [{"role": "tool", "content": "x"}]}),
        json!({"messages": [{"role": "critic", "content": "x"}]}),
    ] {
        assert!(read(body.to_string().as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn replies_round_trip() {
    let reply = Reply {
        content: "c".to_owned(),
        calls: vec![ToolCall::new("1", "bash", json!({"command": "ls"}))],
        finish: Finish::ToolCalls,
        ..Reply::default()
    };
    let answer = completion(&reply, "m");
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    let back: ChatMessage =
        serde_json::from_value(answer["choices"][0]["message"].clone()).unwrap();
    assert_eq!(message(back).unwrap(), reply.turn().assistant);
    let events = events(&reply, "m");
    assert!(events.contains("\"index\":0") && events.ends_with("data: [DONE]\n\n"));
}
