//! The budget of a run. It is checked in advance: a call whose estimate does not fit is not made.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::token_shares::{TokenShares, add_shares, add_side_call};
use crate::outcome::Limit;
use crate::trajectory::EnvironmentRepair;
use testwright_config::settings::Settings;
use testwright_models::{Message, Reply, Request, Usage};
use testwright_tools::tool::ToolSpec;

/// Limits of a run; `None` means no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum model calls of the conversation. Side calls such as reviews are paid for, but do not count as
    /// steps.
    pub steps: Option<u32>,
    /// Maximum cost in US dollars; `None` for no limit.
    pub dollars: Option<f64>,
    /// Maximum tokens, prompts and completions together.
    pub tokens: Option<u64>,
    /// Maximum minutes of the run, without waits for a processor.
    pub minutes: Option<f64>,
}

impl Limits {
    /// Returns the limits that the settings state.
    pub fn of_settings(settings: &Settings) -> Self {
        Limits {
            steps: Some(u32::try_from(settings.run.max_steps).unwrap_or(u32::MAX)),
            dollars: settings.run.max_dollars,
            tokens: settings.run.max_tokens,
            minutes: Some(settings.run.max_minutes),
        }
    }
}

/// Usage of a run so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Model calls of the conversation or of a pipeline's stages, without side calls.
    pub steps: u32,
    /// All model calls, including side calls.
    pub model_calls: u32,
    /// Model calls that failed and were retried.
    pub failed_calls: u32,
    /// Tool calls that could not be read.
    pub malformed_calls: u32,
    /// Tool calls that were refused with a reason.
    pub refused_calls: u32,
    /// Tool calls by name of the tool, including refused ones.
    pub tool_calls: std::collections::BTreeMap<String, u32>,
    /// All prompt tokens, including cached ones.
    pub prompt_tokens: u64,
    /// Prompt tokens from the provider's cache, a part of `prompt_tokens`.
    pub cached_tokens: u64,
    /// Tokens that the model wrote.
    pub completion_tokens: u64,
    /// Tokens by purpose. The tokens of a prompt are divided among its parts in proportion to their length.
    #[serde(default)]
    pub token_shares: TokenShares,
    /// Cost in US dollars; `None` if the model has no price.
    pub dollars: Option<f64>,
    /// Seconds in model calls.
    pub model_seconds: f64,
    /// Seconds in tool calls.
    pub tool_seconds: f64,
}

impl RunUsage {
    /// Returns the number of tokens, prompts and completions together.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds the tokens of a call, and its cost if it has one.
    pub fn add(&mut self, usage: &Usage) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(usage.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cached_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(usage.completion_tokens);
        if let Some(dollars) = usage.dollars {
            *self.dollars.get_or_insert(0.0) += dollars;
        }
    }
}

/// The limits of a run and its usage so far.
#[derive(Debug)]
pub struct Budget {
    /// Limits in force.
    pub limits: Limits,
    /// Usage so far.
    pub spent: RunUsage,
    started: Instant,
    /// Seconds that the run took before it was resumed.
    before: f64,
    /// Time spent waiting for a processor that other runs used.
    waited: Duration,
    last: Usage,
    last_length: usize,
    /// Length of the definitions of tools in the last call.
    last_tools_length: usize,
    /// Dollars per prompt token, for an estimate before the first reply.
    prompt_price: Option<f64>,
}

/// Characters per token, for prompts that no provider has counted yet.
const CHARACTERS_A_TOKEN: usize = 4;
/// Number of calls like the last one below which tokens count as nearly used up.
const CALLS_LEFT: u64 = 3;
/// Minimum completion tokens that a call is expected to need.
const MIN_COMPLETION_TOKENS: u64 = 256;

impl Budget {
    /// Starts the budget of a run; its time starts now.
    pub fn new(limits: Limits) -> Self {
        Budget {
            limits,
            spent: RunUsage::default(),
            started: Instant::now(),
            before: 0.0,
            waited: Duration::ZERO,
            last: Usage::default(),
            last_length: 0,
            last_tools_length: 0,
            prompt_price: None,
        }
    }

    /// Sets the price of a prompt token in dollars. Without it, the limit in dollars does not restrict the first call.
    pub fn set_prompt_price(&mut self, dollars: f64) {
        self.prompt_price = Some(dollars);
    }

    /// Returns the duration of the run so far, without waits for a processor.
    pub fn elapsed(&self) -> Duration {
        let here = self.started.elapsed().saturating_sub(self.waited);
        here + Duration::from_secs_f64(self.before)
    }

    /// Excludes time spent waiting for a processor.
    pub fn exclude_wait(&mut self, waited: Duration) {
        self.waited += waited;
    }

    /// Returns the time left until the limit of minutes, or a day if there is no limit.
    pub fn left(&self) -> Duration {
        let seconds = self.limits.minutes.map_or(86_400.0, |m| m.max(0.0) * 60.0);
        // A number that no duration can hold is no limit.
        let all = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        all.saturating_sub(self.elapsed())
    }

    /// Adds the seconds of an earlier part of the run.
    pub fn add_earlier_time(&mut self, seconds: f64) {
        self.before += seconds;
    }

    /// Records a model call that took `seconds`; `step` tells whether it counts as a step.
    pub fn record_call(&mut self, reply: &Reply, request: &Request, seconds: f64, step: bool) {
        self.add_call(reply, seconds, step);
        self.spent.malformed_calls += reply.malformed.len() as u32;
        add_shares(&mut self.spent.token_shares, request, &reply.usage, step);
        if step {
            self.last = reply.usage;
            self.last_length = length(&request.messages);
            self.last_tools_length = tools_length(&request.tools);
        }
    }

    /// Records a side call of an earlier part of the run, such as a review.
    pub fn record_side_call(&mut self, reply: &Reply, seconds: f64) {
        add_side_call(&mut self.spent.token_shares, &reply.usage);
        self.record_dropped_call(reply, seconds, false);
    }

    /// Records a model call of an earlier part of the run, whose reply is not used again.
    pub fn record_dropped_call(&mut self, reply: &Reply, seconds: f64, step: bool) {
        self.add_earlier_time(seconds);
        self.add_call(reply, seconds, step);
    }

    fn add_call(&mut self, reply: &Reply, seconds: f64, step: bool) {
        self.spent.steps += u32::from(step);
        self.spent.model_calls += 1;
        self.spent.failed_calls += reply.failed_tries;
        self.spent.model_seconds += seconds;
        self.spent.add(&reply.usage);
    }

    /// Records the model calls of a repair that came before the run. They are no steps, and their time does not count.
    pub fn record_repair(&mut self, repair: &EnvironmentRepair) {
        self.spent.model_calls += repair.calls;
        self.spent.model_seconds += repair.model_seconds;
        self.spent.add(&repair.usage);
    }

    /// Returns the limit that the next call would exceed, if any. The tools of a program's calls can differ from call to
    /// call, so their length counts. For a conversation, `tools` is empty.
    pub fn next_call(&self, messages: &[Message], tools: &[ToolSpec]) -> Option<Limit> {
        let max_steps = self.limits.steps;
        if max_steps.is_some_and(|most| self.spent.steps >= most) {
            return Some(Limit::Steps);
        }
        self.limit_exceeded_by(self.estimate(messages, tools))
    }

    /// Returns the limit that a side call with these messages would exceed, if any.
    pub fn side_call(&self, messages: &[Message]) -> Option<Limit> {
        self.limit_exceeded_by(self.estimate(messages, &[]))
    }

    fn limit_exceeded_by(&self, tokens: u64) -> Option<Limit> {
        if self.left().is_zero() {
            return Some(Limit::Minutes);
        }
        let all_tokens = self.spent.tokens().saturating_add(tokens);
        if self.limits.tokens.is_some_and(|most| all_tokens > most) {
            return Some(Limit::Tokens);
        }
        if let (Some(most), Some(price)) = (self.limits.dollars, self.token_price())
            && self.spent.dollars.unwrap_or(0.0) + price * tokens as f64 > most
        {
            return Some(Limit::Dollars);
        }
        None
    }

    /// Returns the price per token so far, which is the best estimate for the next token.
    fn token_price(&self) -> Option<f64> {
        let tokens = self.spent.tokens().max(1) as f64;
        let average = self.spent.dollars.map(|spent| spent / tokens);
        average.or(self.prompt_price)
    }

    /// Describes the amounts for a call that would exceed a limit of tokens or dollars.
    pub fn describe_excess(
        &self,
        limit: Limit,
        messages: &[Message],
        tools: &[ToolSpec],
    ) -> Option<String> {
        let tokens = self.estimate(messages, tools);
        match limit {
            Limit::Tokens => Some(format!(
                "{} of {} tokens are used, and the next call could need {tokens}",
                self.spent.tokens(),
                self.limits.tokens?
            )),
            Limit::Dollars => Some(format!(
                "${:.4} of ${} is spent, and the next call could cost ${:.4}",
                self.spent.dollars.unwrap_or(0.0),
                self.limits.dollars?,
                self.token_price()? * tokens as f64
            )),
            Limit::Steps | Limit::Minutes => None,
        }
    }

    /// Returns the maximum completion tokens of a call with these messages: `most`, or less if the token
    /// limit leaves less. `tools` are as for [`Budget::next_call`].
    pub fn completion_tokens(
        &self,
        messages: &[Message],
        tools: &[ToolSpec],
        most: Option<u64>,
    ) -> Option<u64> {
        let most = most?;
        let Some(limit) = self.limits.tokens else {
            return Some(most);
        };
        let estimate = self.estimate(messages, tools);
        let prompt = estimate.saturating_sub(MIN_COMPLETION_TOKENS);
        let remaining_tokens = limit.saturating_sub(self.spent.tokens().saturating_add(prompt));
        Some(most.min(remaining_tokens.max(MIN_COMPLETION_TOKENS)))
    }

    /// Returns the limits for one of `parts` equal parts of the remaining budget.
    pub fn share(&self, parts: u32) -> Limits {
        let parts = parts.max(1);
        let limits = &self.limits;
        let share = |most: f64, spent: f64| spent + (most - spent).max(0.0) / f64::from(parts);
        let minutes = self.elapsed().as_secs_f64() / 60.0;
        let (steps, tokens) = (self.spent.steps, self.spent.tokens());
        Limits {
            steps: (limits.steps).map(|most| steps + most.saturating_sub(steps).div_ceil(parts)),
            dollars: (limits.dollars).map(|most| share(most, self.spent.dollars.unwrap_or(0.0))),
            tokens: (limits.tokens)
                .map(|most| tokens + most.saturating_sub(tokens) / u64::from(parts)),
            minutes: limits.minutes.map(|most| share(most, minutes)),
        }
    }

    /// Describes a budget that is nearly used up, to remind the model in time.
    pub fn nearly_spent(&self) -> Option<String> {
        let max_steps = self.limits.steps;
        match max_steps.map(|most| most.saturating_sub(self.spent.steps)) {
            Some(1) => return Some("1 step".to_owned()),
            Some(left @ ..=3) => return Some(format!("{left} steps")),
            _ => {}
        }
        let is_nearly_spent = |spent: f64, max: f64| max > 0.0 && spent > 0.9 * max;
        if let (Some(max), Some(spent)) = (self.limits.dollars, self.spent.dollars)
            && is_nearly_spent(spent, max)
        {
            return Some(format!("{:.2} dollars", (max - spent).max(0.0)));
        }
        if let Some(max) = self.limits.minutes
            && is_nearly_spent(self.elapsed().as_secs_f64(), max * 60.0)
        {
            return Some(format!("{:.1} minutes", self.left().as_secs_f64() / 60.0));
        }
        let max = self.limits.tokens?;
        let remaining_tokens = max.saturating_sub(self.spent.tokens());
        let last = &self.last;
        let last = last.prompt_tokens.saturating_add(last.completion_tokens);
        // Each call is at least as long as the previous one.
        let is_for_few = last > 0 && remaining_tokens < last.saturating_mul(CALLS_LEFT);
        (is_for_few || is_nearly_spent(self.spent.tokens() as f64, max as f64))
            .then(|| format!("{remaining_tokens} tokens"))
    }

    fn estimate(&self, messages: &[Message], tools: &[ToolSpec]) -> u64 {
        let (length, tools_length) = (length(messages), tools_length(tools));
        let (counted, new) = match self.last.prompt_tokens {
            counted @ 1.. if length >= self.last_length => {
                let new_tools = tools_length.saturating_sub(self.last_tools_length);
                (counted, length - self.last_length + new_tools)
            }
            _ => (0, length + tools_length),
        };
        let new = (new / CHARACTERS_A_TOKEN) as u64;
        counted.saturating_add(new + MIN_COMPLETION_TOKENS)
    }
}

/// Returns the length of the definitions of tools, without their JSON keys.
fn tools_length(tools: &[ToolSpec]) -> usize {
    let lengths = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len());
    lengths.sum()
}

fn length(messages: &[Message]) -> usize {
    let lengths = messages.iter().map(|message| match message {
        Message::System { content } | Message::User { content } => content.len(),
        Message::Assistant {
            content,
            calls,
            extra,
        } => {
            let calls = calls.iter();
            let calls = calls.map(|call| call.arguments.as_str().len() + call.name.len());
            content.len() + extra.length() + calls.sum::<usize>()
        }
        Message::Tool(result) => result.content.len(),
    });
    lengths.sum()
}

#[cfg(test)]
mod tests;
