#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;
use testwright_models::ToolResult;

fn twice(runner: &mut PolicyRunner) -> Result<(), Turn> {
    let first = runner.call("search", json!({"pattern": "a"}), "")?;
    let second = runner.call("search", json!({"pattern": first}), "")?;
    Err(Turn::Final(second))
}

fn turn(messages: &[Message]) -> Turn {
    twice(&mut PolicyRunner::new(messages)).unwrap_err()
}

#[test]
fn policy_stops_at_unanswered_call() {
    let mut messages = Vec::new();
    for (id, answer) in [("s1", "b"), ("s2", "end")] {
        let Turn::Call(call, _) = turn(&messages) else {
            panic!("a call is due")
        };
        assert_eq!(call.id, id);
        messages.push(Message::Assistant {
            content: String::new(),
            calls: vec![*call],
            extra: Default::default(),
        });
        messages.push(Message::Tool(ToolResult {
            id: id.into(),
            content: answer.into(),
        }));
    }
    assert_eq!(turn(&messages), Turn::Final("end".into()));
}

#[test]
fn unanswered_call_is_repeated() {
    let Turn::Call(call, why) = turn(&[]) else {
        panic!("a call is due")
    };
    let open = [Message::Assistant {
        content: String::new(),
        calls: vec![*call.clone()],
        extra: Default::default(),
    }];
    assert_eq!(turn(&open), Turn::Call(call, why));
}

#[test]
fn foreign_conversation_is_refused() {
    let other = ToolCall::new("s1", "submit", json!({}));
    let messages = [Message::Assistant {
        content: String::new(),
        calls: vec![other],
        extra: Default::default(),
    }];
    assert!(turn(&messages).reply().is_err());
}
