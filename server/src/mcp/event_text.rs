//! Events of a run as lines for people.

use serde_json::Value;
use testwright_agent::trajectory::{Event, entries_of};
use testwright_models::ToolCall;

/// Arguments that show what a call is about, the most telling first.
const TELLING: [&str; 8] = [
    "path", "tests", "name", "pattern", "glob", "command", "code", "reason",
];

/// Describes the events of a run, in their order, and counts its steps.
#[derive(Debug, Default)]
pub(super) struct EventText {
    step: u32,
}

impl EventText {
    /// Returns a line for each thing that happened.
    pub(super) fn describe(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Reply { purpose, reply, .. } if purpose.is_step() => {
                self.step += 1;
                let step = self.step;
                if reply.calls.is_empty() {
                    return vec![format!("step {step}: the model replied")];
                }
                let calls = reply.calls.iter();
                calls
                    .map(|call| format!("step {step}: {}", summarize(call)))
                    .collect()
            }
            Event::Reply { .. } => vec!["the reviewer replied".to_owned()],
            Event::Answer(answer) if answer.refused => {
                let reason = first_line(&answer.result.content).unwrap_or_default();
                vec![format!(
                    "step {}: {} refused: {reason}",
                    self.step, answer.tool
                )]
            }
            Event::Stage { stage, result } => {
                let result = first_line(result).unwrap_or_default();
                vec![format!("{stage}: {result}")]
            }
            Event::NoReply { .. } | Event::DraftEnded { .. } | Event::Compacted { .. } => {
                let entries = entries_of(event).into_iter();
                entries.map(|entry| entry.title).collect()
            }
            Event::Started(_)
            | Event::Message { .. }
            | Event::Answer(_)
            | Event::State { .. }
            | Event::Resumed { .. }
            | Event::Ended { .. } => Vec::new(),
        }
    }
}

/// Returns the name of the tool and what the call is about.
fn summarize(call: &ToolCall) -> String {
    let arguments = call.arguments.value();
    let text = |name: &&str| match &arguments[*name] {
        Value::String(text) => first_line(text).map(str::to_owned),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            (!items.is_empty()).then(|| items.join(" "))
        }
        _ => None,
    };
    match TELLING.iter().find_map(text) {
        Some(text) => format!("{} {text}", call.name),
        None => call.name.clone(),
    }
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
