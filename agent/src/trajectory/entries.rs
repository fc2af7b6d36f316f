//! A trajectory for people: prompts, replies, and the results of calls.

use serde_json::Value;

use super::{Event, NoReplyCause, Purpose};
use crate::outcome::Outcome;
use testwright_models::{Message, ToolCall};

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A prompt.
    Prompt,
    /// A reply of the model.
    Reply,
    /// An answer of a tool.
    Answer,
    /// The result of a stage.
    Stage,
}

/// An event of a trajectory, in readable form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Title in one line.
    pub title: String,
    /// Text, which may have several lines.
    pub text: String,
}

/// Returns the entries for all events, in their order.
pub fn entries(events: &[Event]) -> Vec<Entry> {
    events.iter().flat_map(entries_of).collect()
}

/// Returns the entries for one event.
pub fn entries_of(event: &Event) -> Vec<Entry> {
    let entry = |kind, title: String, text: String| Entry { kind, title, text };
    let stage = |title: String, text: String| vec![entry(EntryKind::Stage, title, text)];
    match event {
        Event::Message {
            message: Message::Assistant { calls, .. },
        } if !calls.is_empty() => {
            let text = calls.iter().map(call_text).collect::<String>();
            let text = text.trim_start().to_owned();
            vec![entry(EntryKind::Reply, "Program".to_owned(), text)]
        }
        Event::Message { message } => vec![asked(message)],
        Event::Reply {
            purpose,
            messages,
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
            text.extend(reply.calls.iter().map(call_text));
            for call in &reply.malformed {
                text.push_str(&format!("\n{CALL}malformed: {}", call.problem));
            }
            all.push(entry(EntryKind::Reply, title, text.trim_start().to_owned()));
            all
        }
        Event::Answer(answer) => {
            let refused = if answer.refused { ", refused" } else { "" };
            let title = format!("{}{refused}: {:.1} s", answer.tool, answer.seconds);
            let text = answer.result.content.clone();
            vec![entry(EntryKind::Answer, title, text)]
        }
        Event::Stage {
            stage: name,
            result,
        } => stage(format!("Stage {name}"), result.clone()),
        Event::NoReply { purpose, cause } => {
            let what = match purpose {
                Purpose::Step | Purpose::Prompt => "the model",
                Purpose::Review => "the reviewer",
            };
            let text = match cause {
                NoReplyCause::ContextFull { message } => message.as_str(),
                NoReplyCause::TimeUp { call_started: true } => "The time was up during the call.",
                NoReplyCause::TimeUp { .. } => "The time was up before the call.",
            };
            stage(format!("No reply from {what}"), text.to_owned())
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
            stage(format!("The end of draft {number}"), text)
        }
        Event::Compacted { .. } => stage(
            "The context was full".to_owned(),
            "Older tool answers were cut.".to_owned(),
        ),
        Event::Started(_) | Event::State { .. } | Event::Resumed { .. } | Event::Ended { .. } => {
            Vec::new()
        }
    }
}

fn call_text(call: &ToolCall) -> String {
    let arguments = readable(&call.arguments.value());
    format!("\n{CALL}{} {arguments}", call.name)
}

fn asked(message: &Message) -> Entry {
    let (who, text) = match message {
        Message::System { content } => ("System prompt", content.clone()),
        Message::User { content } => ("Prompt", content.clone()),
        Message::Assistant { content, .. } => ("Model, earlier", content.clone()),
        Message::Tool(result) => ("Tool answer, earlier", result.content.clone()),
    };
    Entry {
        kind: EntryKind::Prompt,
        title: format!("{who}: {} characters", text.chars().count()),
        text,
    }
}

/// Formats arguments, with multi-line texts unchanged rather than as JSON, and edits as in a patch.
fn readable(arguments: &Value) -> String {
    let Some(fields) = arguments.as_object() else {
        return arguments.to_string();
    };
    if let Some(edit) = readable_edit(arguments) {
        return edit;
    }
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Value::Array(items) => match items.iter().map(readable_edit).collect::<Option<Vec<_>>>() {
            Some(edits) if !edits.is_empty() => format!("{name}:\n  {}", edits.join("\n  ")),
            _ => format!("{name}: {value}"),
        },
        _ => format!("{name}: {value}"),
    };
    fields.iter().map(field).collect::<Vec<_>>().join("\n  ")
}

/// Formats an edit of a file; `None` if it is not one. Lines have signs at the positions that [`Change`]
/// expects.
fn readable_edit(edit: &Value) -> Option<String> {
    let fields = edit.as_object()?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let (path, new) = (text("path")?, text("new")?);
    let mut lines = vec![path.to_owned()];
    for (name, value) in fields {
        if ["path", "old", "new"].contains(&name.as_str()) || value.is_null() {
            continue;
        }
        lines[0].push_str(&match value {
            Value::String(text) => format!(", {name} {text}"),
            value => format!(", {name} {value}"),
        });
    }
    let old: Vec<&str> = text("old").unwrap_or_default().lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let pairs = old.iter().zip(&new);
    let before = pairs.take_while(|(old, new)| old == new).count();
    let pairs = old[before..].iter().rev().zip(new[before..].iter().rev());
    let after = pairs.take_while(|(old, new)| old == new).count();
    let mut put = |change: Change, those: &[&str]| {
        let sign = change.sign();
        lines.extend(those.iter().map(|line| format!("{sign}{line}")));
    };
    put(Change::Same, &old[..before]);
    put(Change::Removed, &old[before..old.len() - after]);
    put(Change::Added, &new[before..new.len() - after]);
    put(Change::Same, &old[old.len() - after..]);
    Some(lines.join("\n"))
}

/// The change of a line by an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The line stays.
    Same,
    /// The line is removed.
    Removed,
    /// The line is added.
    Added,
}

impl Change {
    fn sign(self) -> &'static str {
        match self {
            Change::Same => "      ",
            Change::Removed => "    - ",
            Change::Added => "    + ",
        }
    }

    /// Returns the change shown in a line of a call.
    pub fn from_line(line: &str) -> Self {
        let signs = [Change::Removed, Change::Added];
        let change = signs.into_iter().find(|c| line.starts_with(c.sign()));
        change.unwrap_or(Change::Same)
    }
}

/// Start of the text of a call.
pub const CALL: &str = "→ ";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edits_look_like_a_patch() {
        let edits = json!({"edits": [
            {"path": "a.py", "old": "def f():\n    return 1", "new": "def f():\n    x = 2\n    return x", "variant": 2},
            {"path": "b.py", "function": "g", "new": "def g():\n    pass"},
        ], "on_top": true});
        let expected_text = "\
edits:
  a.py, variant 2
      def f():
    -     return 1
    +     x = 2
    +     return x
  b.py, function g
    + def g():
    +     pass
  on_top: true";
        assert_eq!(readable(&edits), expected_text);
        let alone = json!({"path": "a.py", "old": "1\n2\n3", "new": "1\n3"});
        assert_eq!(readable(&alone), "a.py\n      1\n    - 2\n      3");
        let other = json!({"edits": [], "tests": ["a", "b"], "text": "1\n2"});
        assert_eq!(
            readable(&other),
            "edits: []\n  tests: [\"a\",\"b\"]\n  text:\n1\n2"
        );
        assert_eq!(Change::from_line("    - x"), Change::Removed);
        assert_eq!(Change::from_line("    + x"), Change::Added);
        assert_eq!(Change::from_line("- x"), Change::Same);
    }
}
