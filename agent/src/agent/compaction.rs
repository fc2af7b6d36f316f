//! Compaction of a full context: the oldest tool results are cut to one line each. Once all are cut, long
//! texts of the user and the model are shortened. No model call is needed.

use serde_json::{Map, Value};
use testwright_agent_prompts::{Cut, Prompt};

use testwright_models::Message;

/// Minimum length of an answer to cut; shorter ones gain nothing.
const SHORT: usize = 400;

/// Maximum length in characters of other texts once no answer is left to cut.
const MAX_TEXT: usize = 3_000;

/// Returns the index of the message up to which answers should be cut, to remove about half of their length.
/// If no answer is left to cut, this is the end of the messages, whose long texts should be shortened. Returns
/// `None` if nothing is left to cut.
pub(super) fn cut_position(messages: &[Message]) -> Option<usize> {
    answers_position(messages).or_else(|| {
        let is_long = |message: &Message| shortened(message).is_some();
        messages.iter().any(is_long).then_some(messages.len())
    })
}

fn answers_position(messages: &[Message]) -> Option<usize> {
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
    let all: usize = lengths.iter().map(|(_, length)| length).sum();
    let mut cut_bytes = 0;
    let reaches_half = |(_, length): &&(usize, usize)| {
        cut_bytes += length;
        cut_bytes >= all.div_ceil(2)
    };
    let (last, _) = lengths.iter().find(reaches_half)?;
    Some(last + 1)
}

/// Cuts the answers among the first `until` messages, or shortens other texts if there are no such answers.
pub(super) fn cut(messages: &mut [Message], until: usize) {
    let end = until.min(messages.len());
    if answers_position(&messages[..end]).is_none() {
        for message in &mut messages[..end] {
            if let Some(shorter) = shortened(message) {
                *message = shorter;
            }
        }
        return;
    }
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

/// Returns a message with its long texts shortened; `None` if it has none.
fn shortened(message: &Message) -> Option<Message> {
    let mut shorter = message.clone();
    match &mut shorter {
        Message::System { .. } | Message::Tool(_) => {}
        Message::User { content } => shorten(content),
        Message::Assistant {
            content,
            calls,
            extra,
        } => {
            shorten(content);
            for call in calls {
                let mut arguments = call.arguments.value();
                shorten_texts(arguments.as_object_mut());
                call.arguments = arguments.into();
            }
            // Only reasoning in plain text is shortened.
            let mut fields = extra.fields();
            shorten_texts(Some(&mut fields));
            *extra = fields.into();
        }
    }
    (shorter != *message).then_some(shorter)
}

/// Shortens texts, but not signatures, which a service accepts only unchanged.
fn shorten_texts(fields: Option<&mut Map<String, Value>>) {
    for (key, value) in fields.into_iter().flatten() {
        if let Value::String(text) = value
            && !key.contains("signature")
        {
            shorten(text);
        }
    }
}

/// Keeps the start and the end of a long text.
fn shorten(text: &mut String) {
    let length = text.chars().count();
    if length <= MAX_TEXT {
        return;
    }
    let kept = MAX_TEXT / 3;
    let start: String = text.chars().take(kept * 2 - 100).collect();
    let end: String = text.chars().skip(length - kept).collect();
    let left_out = length - (kept * 2 - 100) - kept;
    *text = format!("{start}\n[{left_out} characters were cut to make room]\n{end}");
}

#[cfg(test)]
mod tests;
