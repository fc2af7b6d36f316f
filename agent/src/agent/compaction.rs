//! Compaction of a full context: the oldest tool results are cut to one line each. Messages of the model and
//! of the user stay, and no model call is needed.

use testwright_agent_prompts::{Cut, Prompt};

use testwright_models::Message;

/// Minimum length of an answer to cut; shorter ones gain nothing.
const SHORT: usize = 400;

/// Returns the index of the message up to which answers should be cut, to remove about half of their length.
/// Returns `None` if nothing is left to cut.
pub(super) fn cut_position(messages: &[Message]) -> Option<usize> {
    let lengths: Vec<(usize, usize)> = messages
        .iter()
        .enumerate()
        .filter_map(|(i, message)| match message {
            Message::Tool(result) if result.content.len() > SHORT => {
                Some((i, result.content.len()))
            }
            _ => None,
        })
        .collect();
    let half = lengths
        .iter()
        .map(|(_, length)| length)
        .sum::<usize>()
        .div_ceil(2);
    let mut cut_bytes = 0;
    for (i, length) in lengths {
        cut_bytes += length;
        if cut_bytes >= half {
            return Some(i + 1);
        }
    }
    None
}

/// Cuts the answers among the first `until` messages.
pub(super) fn cut(messages: &mut [Message], until: usize) {
    let names: std::collections::HashMap<String, String> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant { calls, .. } => Some(calls),
            _ => None,
        })
        .flatten()
        .map(|call| (call.id.clone(), call.name.clone()))
        .collect();
    for message in messages.iter_mut().take(until) {
        if let Message::Tool(result) = message
            && result.content.len() > SHORT
        {
            let note = Cut {
                tool: names.get(&result.id).cloned().unwrap_or_default(),
                lines: result.content.lines().count(),
            };
            if let Ok(text) = note.render() {
                result.content = text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testwright_models::{ToolCall, ToolResult};

    fn exchange(id: &str, length: usize) -> [Message; 2] {
        [
            Message::Assistant {
                content: String::new(),
                calls: vec![ToolCall {
                    id: id.into(),
                    name: "search".into(),
                    arguments: serde_json::json!({}).into(),
                }],
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
}
