//! The agent loop.

use testwright_agent_prompts::{
    Cut, HeldBack, NearlySpent, NoToolCall, NothingTried, Prompt, ReasonMissing, ReplyCut, Skipped,
    Stuck,
};
use testwright_tools::tool::{AnyTool, Route, ToolSpec};

use super::earlier_calls::CallDependencies;
use super::repetition::{Advice, Repetition};
use super::submission_policy::OnSubmit;
use super::{Flow, Outcome, Run};
use testwright_models::{Finish, Message, Reply};

/// Settings of an agent that differ between approaches.
pub struct LoopConfig {
    /// Tools to offer, in this order.
    pub tools: Vec<&'static dyn AnyTool>,
    /// Whether to run all calls of a reply; otherwise only the first.
    pub parallel_calls: bool,
    /// Number of consecutive replies without a tool call that end the run. If it is 1, such a reply says why.
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
    ReplyCut::NAME,
    Stuck::NAME,
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
    let mut repetition = Repetition::default();
    loop {
        let compactions = run.compactions;
        let reply = run.next_reply(&specs, config.parallel_calls).await?;
        if run.compactions > compactions {
            repetition.forget();
        }
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
                if tool.route() == Route::Fork
                    && let Ok(arguments) = tool.check(call.arguments.value())
                {
                    run.set_last_fix(&arguments);
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
            run.remark(remark)?;
        } else if reply.calls.is_empty() && reply.malformed.is_empty() {
            silent += 1;
            if silent >= config.max_empty_replies {
                let is_reason = config.max_empty_replies == 1;
                return Ok(Outcome::nothing(last_words(&reply, is_reason)));
            }
            let left = config.max_empty_replies - silent;
            run.remark(match reply.finish {
                Finish::Length => ReplyCut { left }.render()?,
                _ => NoToolCall { left }.render()?,
            })?;
        }
        match repetition.add(&reply, &last_answers(run.messages())) {
            Advice::GoOn => {}
            Advice::Tell { replies, left, why } => {
                run.remark(Stuck { replies, why, left }.render()?)?;
            }
            Advice::End(reason) => return Ok(Outcome::Nothing { reason }),
        }
        if !reply.calls.is_empty() {
            silent = 0;
        }
        if !warned && let Some(left) = run.budget.nearly_spent() {
            warned = true;
            run.remark(NearlySpent { left }.render()?)?;
        }
    }
}

/// Returns the answers to the last reply.
fn last_answers(messages: &[Message]) -> Vec<&str> {
    let after_reply = messages.iter().rev().take_while(|message| {
        // Remarks follow the answers.
        matches!(message, Message::Tool(_) | Message::User { .. })
    });
    after_reply
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result.content.as_str()),
            _ => None,
        })
        .collect()
}

/// Returns why a conversation ends with a reply without a tool call, which may itself be the reason.
fn last_words(reply: &Reply, is_reason: bool) -> String {
    let words: String = reply.content.trim().chars().take(400).collect();
    match reply.finish {
        Finish::Length => {
            "the model's replies reached their token limit before any tool call; raise `max-tokens` in [model]"
                .to_owned()
        }
        Finish::ContentFilter if words.is_empty() => {
            "the provider's content filter withheld the reply".to_owned()
        }
        _ if words.is_empty() => "the model stopped without calling a tool".to_owned(),
        _ if is_reason => words,
        _ => format!("the model stopped without calling a tool; its last reply: {words}"),
    }
}
