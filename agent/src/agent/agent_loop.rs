//! The agent loop.

use testwright_agent_prompts::{
    Cut, HeldBack, NearlySpent, NoToolCall, NothingTried, Prompt, ReasonMissing, RenderError,
    Skipped,
};
use testwright_tools::tool::{AnyTool, Route, ToolSpec};

use super::earlier_calls::CallDependencies;
use super::failures::prompt;
use super::submission_policy::OnSubmit;
use super::{Flow, Outcome, Run};
use testwright_models::Message;

/// Settings of an agent that differ between approaches.
pub struct LoopConfig {
    /// Tools to offer, in this order.
    pub tools: Vec<&'static dyn AnyTool>,
    /// Whether to run all calls of a reply; otherwise only the first.
    pub parallel_calls: bool,
    /// Number of consecutive replies without a tool call that end the run.
    pub max_empty_replies: u32,
    /// When a submission ends the run.
    pub on_submit: OnSubmit,
}

impl LoopConfig {
    /// Returns whether this tool submits tests.
    fn submits(&self, name: &str) -> bool {
        let mut tools = self.tools.iter();
        tools.any(|tool| tool.name() == name && tool.route() == Route::Gate)
    }
}

/// Names of the templates for the loop's own messages to a model.
pub const LOOP_PROMPTS: &[&str] = &[
    NoToolCall::NAME,
    Skipped::NAME,
    HeldBack::NAME,
    ReasonMissing::NAME,
    NothingTried::NAME,
    NearlySpent::NAME,
    Cut::NAME,
];

/// Asks the model, runs its calls and records them until the run ends.
pub async fn run_loop(run: &mut Run, config: &LoopConfig, hook: &mut dyn Hook) -> Outcome {
    match steps(run, config, hook).await {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

/// An approach's actions between the calls.
#[async_trait::async_trait]
pub trait Hook: Send {
    /// Runs before a call. `Some` is an answer that replaces the call.
    async fn before(
        &mut self,
        _run: &mut Run,
        _call: &testwright_models::ToolCall,
    ) -> Flow<Option<String>> {
        Ok(None)
    }

    /// Runs after a call.
    fn after(&mut self, _answer: &crate::trajectory::RecordedAnswer) {}
}

/// A hook that does nothing.
pub struct NoHook;

impl Hook for NoHook {}

async fn steps(run: &mut Run, config: &LoopConfig, hook: &mut dyn Hook) -> Flow<Outcome> {
    let specs: Vec<ToolSpec> = config.tools.iter().map(|tool| tool.spec()).collect();
    let mut silent = 0;
    let mut warned = false;
    loop {
        let reply = run.next_reply(&specs, config.parallel_calls).await?;
        let turn = reply.turn();
        let mut earlier = CallDependencies::default();
        for (i, call) in reply.calls.iter().enumerate() {
            if i > 0 && !config.parallel_calls {
                run.decline(call, "Not carried out: one command at a time.".to_owned())?;
                continue;
            }
            if let Some(text) = hook.before(run, call).await? {
                run.decline(call, text)?;
                continue;
            }
            let tool = config.tools.iter().find(|tool| tool.name() == call.name);
            if let Some(tool) = tool
                && let Some(text) = earlier.declines(*tool, call)?
            {
                if tool.route() == Route::Fork {
                    run.set_last_fix(&call.arguments.value());
                }
                run.decline(call, text)?;
                continue;
            }
            let answer = run.call(call, &config.tools).await?;
            if let Some(tool) = tool {
                earlier.note(*tool, &answer);
            }
            hook.after(&answer);
            if config.submits(&call.name)
                && let Some(outcome) = run.outcome_after_submission(config.on_submit, &answer)
            {
                return Ok(outcome);
            }
        }
        // Keep the order of the assistant's message: unreadable calls come last.
        for answer in turn.answers {
            run.answered(answer);
        }
        if let Some(remark) = turn.remark {
            run.say(Message::User { content: remark })?;
        } else if reply.calls.is_empty() && reply.malformed.is_empty() {
            silent += 1;
            if silent >= config.max_empty_replies {
                return Ok(Outcome::Nothing {
                    reason: last_words(&reply.content),
                });
            }
            let remaining_replies = config.max_empty_replies - silent;
            run.say(user(
                NoToolCall {
                    left: remaining_replies,
                }
                .render(),
            )?)?;
        }
        if !reply.calls.is_empty() {
            silent = 0;
        }
        if !warned && let Some(remaining_budget) = run.budget.nearly_spent() {
            warned = true;
            run.say(user(
                NearlySpent {
                    left: remaining_budget,
                }
                .render(),
            )?)?;
        }
    }
}

fn last_words(content: &str) -> String {
    let words: String = content.trim().chars().take(400).collect();
    if words.is_empty() {
        "the model stopped without calling a tool".to_owned()
    } else {
        words
    }
}

/// Wraps a rendered prompt as a user message.
pub(crate) fn user(text: Result<String, RenderError>) -> Flow<Message> {
    Ok(Message::User {
        content: prompt(text)?,
    })
}
