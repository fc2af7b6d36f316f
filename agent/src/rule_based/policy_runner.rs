//! Runs a policy that is written as if its calls returned. Each turn starts the policy over, gives it the
//! answers already in the conversation, and stops it at the first call without one.

use std::collections::HashMap;

use serde_json::Value;

use testwright_models::{Finish, Message, Reply, ToolCall};

/// The end of a turn, passed up with `?`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Turn {
    Call(Box<ToolCall>, String),
    /// The final message; there is nothing more to do.
    Final(String),
    /// The conversation has another call here than the policy makes.
    Mismatch(String),
}

/// The calls and answers of a conversation so far.
pub(super) struct PolicyRunner {
    recorded: Vec<(ToolCall, Option<String>)>,
    next: usize,
}

impl PolicyRunner {
    pub(super) fn new(messages: &[Message]) -> Self {
        let mut answers = HashMap::new();
        let mut calls: Vec<&ToolCall> = Vec::new();
        for message in messages {
            match message {
                Message::Assistant {
                    calls: message_calls,
                    ..
                } => calls.extend(message_calls),
                Message::Tool(result) => {
                    answers.insert(result.id.as_str(), result.content.clone());
                }
                _ => {}
            }
        }
        let recorded = calls
            .into_iter()
            .map(|call| (call.clone(), answers.get(call.id.as_str()).cloned()))
            .collect();
        PolicyRunner { recorded, next: 0 }
    }

    /// Returns the answer to a call. The first call without an answer ends the turn; `why` is its text.
    pub(super) fn call(&mut self, tool: &str, arguments: Value, why: &str) -> Result<String, Turn> {
        let at = self.next;
        self.next += 1;
        let call = ToolCall::new(format!("s{}", at + 1), tool, arguments);
        if let Some((recorded_call, answer)) = self.recorded.get(at) {
            if recorded_call.name != call.name || recorded_call.arguments != call.arguments {
                return Err(Turn::Mismatch(format!(
                    "call {} of the conversation is `{}`, but the rules would call `{}`, so they cannot continue",
                    at + 1,
                    recorded_call.name,
                    call.name
                )));
            }
            if let Some(answer) = answer {
                return Ok(answer.clone());
            }
        }
        Err(Turn::Call(Box::new(call), why.to_owned()))
    }
}

impl Turn {
    /// Returns the reply of a turn; a conversation of another model is an error.
    pub(super) fn reply(self) -> Result<Reply, String> {
        let reply = |content, calls, finish| Reply {
            content,
            calls,
            finish,
            ..Reply::default()
        };
        match self {
            Turn::Call(call, why) => Ok(reply(why, vec![*call], Finish::ToolCalls)),
            Turn::Final(words) => Ok(reply(words, Vec::new(), Finish::Stop)),
            Turn::Mismatch(what) => Err(what),
        }
    }
}

#[cfg(test)]
mod tests;
