//! What a reply becomes in the conversation.
//!
//! Providers refuse a history in which an assistant's tool call has no answer, or has arguments that
//! are not JSON. So a call that could not be read is kept as a call with the raw text as its one
//! argument, and answered by a tool message; one that was written as text is answered in words.

use serde_json::json;

use super::{MalformedCall, Message, Reply, ToolCall, ToolResult};

/// The name of the one argument that holds what could not be read.
pub const UNREADABLE: &str = "unreadable";

/// A reply, ready to be appended: first `assistant`, then the answers to all calls (those to the
/// malformed ones are in `answers`), then `remark` as a user message.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub assistant: Message,
    pub answers: Vec<ToolResult>,
    /// About calls that were written as text and could not be read.
    pub remark: Option<String>,
}

impl Reply {
    /// This reply as messages.
    pub fn turn(&self) -> Turn {
        let mut calls = self.calls.clone();
        let mut answers = Vec::new();
        let mut remarks = Vec::new();
        for bad in &self.malformed {
            match &bad.id {
                Some(id) => {
                    calls.push(kept_call(id, bad));
                    answers.push(ToolResult {
                        id: id.clone(),
                        content: format!("This call was not carried out: {}", bad.problem),
                    });
                }
                None => remarks.push(bad.problem.as_str()),
            }
        }
        Turn {
            assistant: Message::Assistant {
                content: self.content.clone(),
                calls,
            },
            answers,
            remark: remark(&remarks),
        }
    }
}

fn kept_call(id: &str, bad: &MalformedCall) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: bad.name.clone().unwrap_or_else(|| "unknown".to_owned()),
        arguments: json!({ UNREADABLE: bad.text }).into(),
    }
}

fn remark(problems: &[&str]) -> Option<String> {
    match problems {
        [] => None,
        [one] => Some(format!(
            "A tool call in your reply was not carried out: {one}"
        )),
        many => {
            let mut text = format!(
                "{} tool calls in your reply were not carried out:",
                many.len()
            );
            for problem in many {
                text.push_str("\n- ");
                text.push_str(problem);
            }
            Some(text)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn bad(id: Option<&str>, problem: &str) -> MalformedCall {
        MalformedCall {
            id: id.map(str::to_owned),
            name: Some("search".to_owned()),
            text: "{\"pattern\": ".to_owned(),
            problem: problem.to_owned(),
        }
    }

    #[test]
    fn a_call_that_could_not_be_read_is_kept_and_answered() {
        let reply = Reply {
            malformed: vec![bad(Some("a"), "cut"), bad(None, "no tool x")],
            ..Reply::default()
        };
        let turn = reply.turn();
        let Message::Assistant { calls, .. } = &turn.assistant else {
            panic!("not an assistant message")
        };
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].arguments, json!({"unreadable": "{\"pattern\": "}));
        assert_eq!(turn.answers.len(), 1);
        assert_eq!(turn.answers[0].id, "a");
        assert!(turn.answers[0].content.contains("cut"));
        assert!(turn.remark.unwrap().contains("no tool x"));
    }

    #[test]
    fn a_plain_reply_is_just_itself() {
        let reply = Reply {
            content: "hello".to_owned(),
            ..Reply::default()
        };
        let turn = reply.turn();
        assert!(turn.answers.is_empty() && turn.remark.is_none());
    }
}
