//! A trajectory for people: what the model was asked, what it answered, what its calls came to.

use super::{Event, NoReplyCause, Purpose};
use crate::agent::Outcome;
use crate::model::Message;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A prompt.
    Asked,
    /// What a model says.
    Reply,
    /// Of a tool.
    Answer,
    /// What a stage came to.
    Stage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    pub title: String,
    pub text: String,
}

pub fn entries(events: &[Event]) -> Vec<Entry> {
    events.iter().flat_map(of_event).collect()
}

fn of_event(event: &Event) -> Vec<Entry> {
    let entry = |kind, title: String, text: String| Entry { kind, title, text };
    match event {
        Event::Message { message } => vec![asked(message)],
        Event::Reply {
            purpose,
            asked: messages,
            reply,
            seconds,
            ..
        } => {
            let mut all: Vec<Entry> = messages.iter().map(asked).collect();
            let what = match purpose {
                Purpose::Step | Purpose::Prompt => "Model",
                Purpose::Review => "Reviewer",
            };
            let usage = &reply.usage;
            let title = format!(
                "{what}: {} prompt and {} completion tokens, {seconds:.1} s",
                usage.prompt_tokens, usage.completion_tokens
            );
            let mut text = reply.content.trim().to_owned();
            for call in &reply.calls {
                text.push_str(&format!(
                    "\n→ {} {}",
                    call.name,
                    readable(&call.arguments.value())
                ));
            }
            for call in &reply.malformed {
                text.push_str(&format!("\n→ malformed: {}", call.problem));
            }
            all.push(entry(EntryKind::Reply, title, text.trim_start().to_owned()));
            all
        }
        Event::Answer(answer) => {
            let refused = if answer.refused { ", refused" } else { "" };
            let title = format!("{}{refused}: {:.1} s", answer.tool, answer.seconds);
            vec![entry(
                EntryKind::Answer,
                title,
                answer.result.content.clone(),
            )]
        }
        Event::Stage { stage, result } => {
            vec![entry(
                EntryKind::Stage,
                format!("Stage {stage}"),
                result.clone(),
            )]
        }
        Event::NoReply { purpose, why } => {
            let what = match purpose {
                Purpose::Step | Purpose::Prompt => "the model",
                Purpose::Review => "the reviewer",
            };
            let text = match why {
                NoReplyCause::ContextFull { message } => message.clone(),
                NoReplyCause::TimeUp { begun: true } => {
                    "The time was up during the call.".to_owned()
                }
                NoReplyCause::TimeUp { begun: false } => {
                    "The time was up before the call.".to_owned()
                }
            };
            vec![entry(EntryKind::Stage, format!("No reply of {what}"), text)]
        }
        Event::DraftEnded {
            number,
            limit,
            reason,
        } => {
            let text = match limit {
                Some(limit) => Outcome::OutOfBudget { limit: *limit }.summary(),
                None => reason.clone().unwrap_or_default(),
            };
            vec![entry(
                EntryKind::Stage,
                format!("The end of draft {number}"),
                text,
            )]
        }
        Event::Compacted { .. } => {
            let text = "Older tool answers were cut.".to_owned();
            vec![entry(
                EntryKind::Stage,
                "The context was full".to_owned(),
                text,
            )]
        }
        Event::Started(_) | Event::State { .. } | Event::Resumed { .. } | Event::Ended { .. } => {
            Vec::new()
        }
    }
}

fn asked(message: &Message) -> Entry {
    let (who, text) = match message {
        Message::System { content } => ("System prompt", content.clone()),
        Message::User { content } => ("Prompt", content.clone()),
        Message::Assistant { content, .. } => ("Model, earlier", content.clone()),
        Message::Tool(result) => ("Tool answer, earlier", result.content.clone()),
    };
    Entry {
        kind: EntryKind::Asked,
        title: format!("{who}: {} characters", text.chars().count()),
        text,
    }
}

/// Texts of several lines as they are, which JSON would put into one.
fn readable(arguments: &serde_json::Value) -> String {
    let Some(fields) = arguments.as_object() else {
        return arguments.to_string();
    };
    let field = |(name, value): (&String, &serde_json::Value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{name}:\n{text}"),
        _ => format!("{name}: {value}"),
    };
    fields.iter().map(field).collect::<Vec<_>>().join("\n  ")
}
