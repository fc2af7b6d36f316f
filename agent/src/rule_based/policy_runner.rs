//! Plays a policy that is written as if its calls returned: each turn runs it from the start, hands it the
//! answers that the conversation already holds, and stops it at the first call that has none.

use std::collections::HashMap;

use serde_json::Value;

use testwright_models::{Finish, Message, Reply, ToolCall};

/// What ends a turn; passed up with `?`.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    Call(Box<ToolCall>, String),
    /// Nothing more to do: the last words.
    Last(String),
    /// The conversation holds another call than the policy makes at this place.
    Strange(String),
}

/// The calls and answers of a conversation so far.
pub struct PolicyRunner {
    recorded: Vec<(ToolCall, Option<String>)>,
    next: usize,
}

impl PolicyRunner {
    pub fn new(messages: &[Message]) -> Self {
        let mut answers = HashMap::new();
        let mut calls: Vec<&ToolCall> = Vec::new();
        for message in messages {
            match message {
                Message::Assistant { calls: made, .. } => calls.extend(made),
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

    /// The answer to a call; the first call without one ends the turn. `why` is said with it.
    pub fn call(&mut self, tool: &str, arguments: Value, why: &str) -> Result<String, Turn> {
        let at = self.next;
        self.next += 1;
        let call = ToolCall {
            id: format!("s{}", at + 1),
            name: tool.to_owned(),
            arguments: arguments.into(),
        };
        match self.recorded.get(at) {
            Some((made, Some(answer)))
                if made.name == call.name && made.arguments == call.arguments =>
            {
                Ok(answer.clone())
            }
            Some((made, None)) if made.name == call.name && made.arguments == call.arguments => {
                Err(Turn::Call(Box::new(call), why.to_owned()))
            }
            Some((made, _)) => Err(Turn::Strange(format!(
                "call {} of the conversation is `{}`, where the rules would call `{}`: they cannot go on from there",
                at + 1,
                made.name,
                call.name
            ))),
            None => Err(Turn::Call(Box::new(call), why.to_owned())),
        }
    }
}

impl Turn {
    /// The reply of a turn; a conversation that is not one of these rules is an error.
    pub fn reply(self) -> Result<Reply, String> {
        let reply = |content, calls, finish| Reply {
            content,
            calls,
            finish,
            ..Reply::default()
        };
        match self {
            Turn::Call(call, why) => Ok(reply(why, vec![*call], Finish::ToolCalls)),
            Turn::Last(words) => Ok(reply(words, Vec::new(), Finish::Stop)),
            Turn::Strange(what) => Err(what),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use testwright_models::ToolResult;

    fn twice(runner: &mut PolicyRunner) -> Result<(), Turn> {
        let first = runner.call("search", json!({"pattern": "a"}), "")?;
        let second = runner.call("search", json!({"pattern": first}), "")?;
        Err(Turn::Last(second))
    }

    fn turn(messages: &[Message]) -> Turn {
        twice(&mut PolicyRunner::new(messages)).unwrap_err()
    }

    #[test]
    fn a_policy_goes_as_far_as_the_conversation_has_answers() {
        let mut messages = Vec::new();
        for (id, answer) in [("s1", "b"), ("s2", "end")] {
            let Turn::Call(call, _) = turn(&messages) else {
                panic!("a call is due")
            };
            assert_eq!(call.id, id);
            messages.push(Message::Assistant {
                content: String::new(),
                calls: vec![*call],
            });
            messages.push(Message::Tool(ToolResult {
                id: id.into(),
                content: answer.into(),
            }));
        }
        assert_eq!(turn(&messages), Turn::Last("end".into()));
    }

    #[test]
    fn a_call_without_an_answer_is_made_again() {
        let Turn::Call(call, why) = turn(&[]) else {
            panic!("a call is due")
        };
        let open = [Message::Assistant {
            content: String::new(),
            calls: vec![*call.clone()],
        }];
        assert_eq!(turn(&open), Turn::Call(call, why));
    }

    #[test]
    fn the_conversation_of_somebody_else_is_refused() {
        let other = ToolCall {
            id: "s1".into(),
            name: "submit".into(),
            arguments: json!({}).into(),
        };
        let messages = [Message::Assistant {
            content: String::new(),
            calls: vec![other],
        }];
        assert!(turn(&messages).reply().is_err());
    }
}
