#![allow(clippy::unwrap_used)]
use super::*;
use testwright_models::{ToolCall, ToolResult};

fn exchange(id: &str, length: usize) -> [Message; 2] {
    [
        Message::Assistant {
            content: String::new(),
            calls: vec![ToolCall::new(id, "search", serde_json::json!({}))],
            extra: Default::default(),
        },
        Message::Tool(ToolResult {
            id: id.into(),
            content: "line\n".repeat(length / 5),
        }),
    ]
}

#[test]
fn oldest_answers_are_cut_first() {
    let mut messages: Vec<Message> = [
        exchange("a", 1_000),
        exchange("b", 1_000),
        exchange("c", 1_000),
    ]
    .concat();
    let first = cut_position(&messages);
    assert_eq!(first, Some(4));
    cut(&mut messages, 4);
    let Message::Tool(result) = &messages[1] else {
        panic!("no answer")
    };
    assert_eq!(
        result.content,
        "[200 lines of an earlier answer of `search` were cut to make room; call it again if you need them]"
    );
    assert_eq!(cut_position(&messages), Some(6));
    cut(&mut messages, 6);
    assert_eq!(cut_position(&messages), None);
}

#[test]
fn long_texts_are_shortened_last() {
    let code = "é".repeat(9_000);
    let mut messages = exchange("a", 1_000).to_vec();
    messages.push(Message::User {
        content: "x".repeat(9_000),
    });
    messages.push(Message::Assistant {
        content: String::new(),
        calls: vec![ToolCall::new(
            "b",
            "insert",
            serde_json::json!({"code": code, "n": 1}),
        )],
        extra: serde_json::from_value(serde_json::json!({"reasoning": code})).unwrap(),
    });
    assert_eq!(cut_position(&messages), Some(2));
    cut(&mut messages, 2);
    assert_eq!(cut_position(&messages), Some(4));
    cut(&mut messages, 4);
    assert_eq!(cut_position(&messages), None);
    let Message::User { content } = &messages[2] else {
        panic!("no user message")
    };
    assert!(content.contains("\n[6100 characters were cut to make room]\n"));
    let Message::Assistant { calls, extra, .. } = &messages[3] else {
        panic!("no reply")
    };
    let arguments = calls[0].arguments.value();
    assert_eq!(arguments["n"], 1);
    assert!(arguments["code"].as_str().unwrap().chars().count() < 3_000);
    assert!(extra.length() < 6_100);
}
