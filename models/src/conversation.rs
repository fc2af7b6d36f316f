//! Turns a reply into messages of the conversation.
//!
//! Providers refuse a history in which a tool call of the assistant has no answer, or has arguments that are
//! not JSON. So an unreadable call is stored as a call with the raw text as its only argument, and answered
//! by a tool message. An unreadable call that was written as text is answered by a user message.

use serde_json::json;

use super::{Message, Reply, ToolCall, ToolResult};

/// Name of the only argument of an unreadable call.
pub const UNREADABLE: &str = "unreadable";

/// A reply, ready to be appended: first `assistant`, then the answers to all calls, then `remark` as a user
/// message. `answers` has those to malformed calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The reply as a message of the assistant.
    pub assistant: Message,
    /// Answers to calls that could not be read.
    pub answers: Vec<ToolResult>,
    /// Remark on calls that were written as text and could not be read.
    pub remark: Option<String>,
}

impl Reply {
    /// Returns this reply as messages.
    pub fn turn(&self) -> Turn {
        let mut calls = self.calls.clone();
        let mut answers = Vec::new();
        let mut remarks = Vec::new();
        for bad in &self.malformed {
            match &bad.id {
                Some(id) => {
                    calls.push(ToolCall {
                        id: id.clone(),
                        name: bad.name.clone().unwrap_or_else(|| "unknown".to_owned()),
                        arguments: json!({ UNREADABLE: bad.text }).into(),
                        extra: bad.extra.clone(),
                    });
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
                extra: self.extra.clone(),
            },
            answers,
            remark: remark(&remarks),
        }
    }
}

fn remark(problems: &[&str]) -> Option<String> {
    match problems {
        [] => None,
        [one] => Some(format!(
            "A tool call in your reply was not carried out: {one}"
        )),
        many => Some(format!(
            "{} tool calls in your reply were not carried out:\n- {}",
            many.len(),
            many.join("\n- ")
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::{ExtraFields, MalformedCall};

    fn bad(id: Option<&str>, problem: &str) -> MalformedCall {
        MalformedCall {
            id: id.map(str::to_owned),
            name: Some("search".to_owned()),
            text: "{\"pattern\": ".to_owned(),
            problem: problem.to_owned(),
            extra: ExtraFields::default(),
        }
    }

    #[test]
    fn unreadable_call_is_answered() {
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
    fn plain_reply_is_unchanged() {
        let reply = Reply {
            content: "hello".to_owned(),
            ..Reply::default()
        };
        let turn = reply.turn();
        assert!(turn.answers.is_empty() && turn.remark.is_none());
    }
}
