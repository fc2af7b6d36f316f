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
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use testwright_agent::trajectory::Purpose;
    use testwright_models::Reply;

    use super::*;

    #[test]
    fn steps_name_tools_and_their_subjects() {
        let reply = |purpose, calls: Value| {
            let reply: Reply = serde_json::from_value(json!({
                "content": "I look.", "calls": calls, "malformed": [], "finish": "tool_calls",
                "usage": {"prompt_tokens": 9, "cached_tokens": 0, "completion_tokens": 1, "dollars": null},
            }))
            .unwrap();
            Event::Reply {
                purpose,
                request: String::new(),
                messages: Vec::new(),
                reply,
                seconds: 1.0,
            }
        };
        let call =
            |name: &str, arguments: Value| json!({"id": "1", "name": name, "arguments": arguments});
        let events = [
            reply(
                Purpose::Step,
                json!([
                    call(
                        "insert_function",
                        json!({"path": "tests/test_a.py", "code": "x"})
                    ),
                    call(
                        "run_pytest",
                        json!({"tests": ["a.py::test_b", "a.py::test_c"]})
                    ),
                ]),
            ),
            reply(
                Purpose::Step,
                json!([call("run_python", json!({"code": "\n  import a\na.b()"}))]),
            ),
            reply(Purpose::Review, json!([])),
            reply(Purpose::Prompt, json!([])),
            reply(Purpose::Step, json!([call("show_patch", json!({}))])),
            Event::Stage {
                stage: "plan".to_owned(),
                result: "2 files\nmore".to_owned(),
            },
        ];
        let mut text = EventText::default();
        let lines: Vec<String> = events.iter().flat_map(|e| text.describe(e)).collect();
        let expected_lines = [
            "step 1: insert_function tests/test_a.py",
            "step 1: run_pytest a.py::test_b a.py::test_c",
            "step 2: run_python import a",
            "the reviewer replied",
            "step 3: the model replied",
            "step 4: show_patch",
            "plan: 2 files",
        ];
        assert_eq!(lines, expected_lines);
    }
}
