//! Usage of a run by model call: tokens, dollars, and the seconds of model and tools.

use serde::Serialize;

use super::{Event, Purpose};
use testwright_models::Usage;

/// A model call, and the usage of the run up to its reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsagePoint {
    /// Purpose of the call.
    pub purpose: Purpose,
    /// Prompt tokens of this call alone.
    pub prompt_tokens: u64,
    /// Completion tokens of this call alone.
    pub completion_tokens: u64,
    /// Seconds of this call alone.
    pub model_seconds: f64,
    /// Seconds of tools between the previous reply and this call.
    pub tool_seconds: f64,
    /// Seconds of model and tools since the first call.
    pub seconds: f64,
    /// Tokens of the run so far, prompts and completions together.
    pub tokens: u64,
    /// Cost in US dollars; `None` after a call without a price.
    pub dollars: Option<f64>,
}

/// Returns the usage in the order of the calls. Overhead of the loop and idle time are not included.
pub fn usage_timeline(events: &[Event]) -> Vec<UsagePoint> {
    let (mut points, mut spent) = (Vec::new(), Usage::default());
    let (mut elapsed, mut in_tools) = (0.0, 0.0);
    for event in events {
        match event {
            Event::Answer(answer) => in_tools += answer.seconds,
            Event::Reply {
                purpose,
                reply,
                seconds,
                ..
            } => {
                spent += reply.usage;
                elapsed += in_tools + seconds;
                points.push(UsagePoint {
                    purpose: *purpose,
                    prompt_tokens: reply.usage.prompt_tokens,
                    completion_tokens: reply.usage.completion_tokens,
                    model_seconds: *seconds,
                    tool_seconds: std::mem::take(&mut in_tools),
                    seconds: elapsed,
                    tokens: spent.prompt_tokens + spent.completion_tokens,
                    dollars: spent.dollars,
                });
            }
            _ => {}
        }
    }
    points
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn reply(purpose: &str, prompt: u64, dollars: Option<f64>, seconds: f64) -> Event {
        let event = json!({"event": "reply", "purpose": purpose, "request": "", "seconds": seconds, "reply": {
            "content": "", "calls": [], "malformed": [], "finish": "stop",
            "usage": {"prompt_tokens": prompt, "cached_tokens": 0, "completion_tokens": 10, "dollars": dollars},
        }});
        serde_json::from_value(event).unwrap()
    }

    fn answer(seconds: f64) -> Event {
        let event = json!({"event": "answer", "tool": "search", "seconds": seconds,
            "result": {"id": "1", "content": ""}});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn each_call_shows_usage_so_far() {
        let events = [
            reply("step", 100, Some(0.25), 2.0),
            answer(1.0),
            answer(0.5),
            reply("review", 50, Some(0.25), 1.0),
            reply("step", 200, None, 1.0),
        ];
        let points = usage_timeline(&events);
        let rows: Vec<_> = points
            .iter()
            .map(|p| (p.purpose, p.tokens, p.tool_seconds, p.seconds, p.dollars))
            .collect();
        assert_eq!(
            rows,
            [
                (Purpose::Step, 110, 0.0, 2.0, Some(0.25)),
                (Purpose::Review, 170, 1.5, 4.5, Some(0.5)),
                (Purpose::Step, 380, 0.0, 5.5, None),
            ]
        );
    }
}
