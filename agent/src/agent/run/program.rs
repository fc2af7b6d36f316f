//! The calls of a program of the user. A resumed run starts the program again, and takes the recorded answers as long
//! as the program makes the same calls in the same order.

use serde_json::Value;
use sha2::{Digest, Sha256};
use testwright_config::hex::hex;
use testwright_tools::tool::{AnyTool, Route};

use super::super::Limit;
use super::super::submission_policy::OnSubmit;
use super::{Flow, Outcome, Run};
use crate::trajectory::{Event, RecordedAnswer};
use testwright_models::{ExtraFields, Message, ToolCall};

impl Run {
    /// Returns the name of the model.
    pub fn model_name(&self) -> &str {
        self.model.name()
    }

    /// Makes a tool call for a program. Returns the answer, and the outcome of a submission: accepted, refused or
    /// abstained.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run: the time is up, or the sandbox or the record fails.
    pub async fn program_call(
        &mut self,
        tool: &str,
        arguments: Value,
        tools: &[&dyn AnyTool],
    ) -> Flow<(RecordedAnswer, Option<Outcome>)> {
        let number: u32 = self.budget.spent.tool_calls.values().sum();
        let call = ToolCall::new(call_id(number + 1, tool, &arguments), tool, arguments);
        if !self.replay.has_answer(&call.id) {
            self.leave_recording();
        }
        if self.budget.left().is_zero() {
            return Err(Limit::Minutes.into());
        }
        self.say(Message::Assistant {
            content: String::new(),
            calls: vec![call.clone()],
            extra: ExtraFields::default(),
        })?;
        let answer = self.call(&call, tools).await?;
        let mut submitting = tools.iter().filter(|tool| tool.route() == Route::Gate);
        let outcome = match submitting.any(|submitting| submitting.name() == tool) {
            true => self.outcome_after_submission(OnSubmit::Once, &answer),
            false => None,
        };
        Ok((answer, outcome))
    }

    /// Drops the rest of the recording, because the program continues differently. What was spent on it counts.
    pub fn leave_recording(&mut self) {
        for event in self.replay.abandon() {
            match event {
                Event::Reply {
                    purpose,
                    reply,
                    seconds,
                    ..
                } => {
                    let is_step = purpose.is_step();
                    self.budget.record_dropped_call(&reply, seconds, is_step);
                }
                Event::Answer(answer) => self.budget.add_earlier_time(answer.seconds),
                _ => {}
            }
        }
    }
}

/// Returns an id that differs if the call does.
fn call_id(number: u32, tool: &str, arguments: &Value) -> String {
    let digest = Sha256::digest(format!("{tool} {arguments}"));
    format!("program-{number}-{}", &hex(&digest)[..12])
}
