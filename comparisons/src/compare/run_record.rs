//! The result of a run, computed from its trajectory: a line of `runs.jsonl`.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::tool::Tool as _;
use testwright_tools::tools::{RunPytest, Submit};

use super::{RUNS, RunSpec, System};
use crate::record_file::{Record, RecordFile};
use testwright_agent::agent::Outcome;
use testwright_agent::trajectory::{Event, Purpose};
use testwright_config::error::Result;

/// Result of one run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Id of the instance.
    pub instance_id: String,
    /// The approach, with its options.
    pub approach: String,
    /// The model, as named in the settings.
    pub model: String,
    /// Sample number, starting at 1.
    pub sample: u32,
    /// Kind of the outcome.
    pub status: RunStatus,
    /// Summary of the outcome, on one line.
    pub outcome: String,
    /// Patch of the submitted test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Confidence in the submitted test, from 0 to 1; 0 if the gate rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Total cost of the run.
    #[serde(flatten)]
    pub cost: RunCost,
    /// Cost by stage. A pipeline has its own stages; the stages of an agent are its steps, reviews and tools.
    pub stages: BTreeMap<String, StageCost>,
}

/// Kind of a run's outcome, independent of the grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run submitted a test. The gate's verdict is only in the trajectory.
    Submitted,
    /// The run ended without a test.
    NothingSubmitted,
    /// The sandbox, the disk or the model's service failed. The run does not count, and is retried.
    Infrastructure,
}

/// Cost of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunCost {
    /// Number of model calls that gave a reply, including reviews; 0 for approaches with fixed rules.
    pub model_calls: u32,
    /// Number of failed tries of model calls.
    pub failed_calls: u32,
    /// Number of malformed tool calls in replies.
    pub malformed_calls: u32,
    /// Number of tool calls.
    pub tool_calls: u32,
    /// Number of prompt tokens, including cached ones.
    pub prompt_tokens: u64,
    /// Number of prompt tokens that came from a provider's cache.
    pub cached_tokens: u64,
    /// Number of tokens that the model wrote.
    pub completion_tokens: u64,
    /// Cost in US dollars; `None` if the model has no price.
    pub dollars: Option<f64>,
    /// Time waiting for the model, in seconds.
    pub model_seconds: f64,
    /// Time of tool calls, in seconds.
    pub tool_seconds: f64,
}

/// Cost of a stage, over one or several runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCost {
    /// Number of model calls.
    pub model_calls: u32,
    /// Number of tokens, prompts and completions together.
    pub tokens: u64,
    /// Time waiting for the model, in seconds.
    pub model_seconds: f64,
    /// Time of tool calls, in seconds.
    pub tool_seconds: f64,
}

impl StageCost {
    /// Adds the cost of another stage or run.
    pub fn add(&mut self, other: StageCost) {
        self.model_calls += other.model_calls;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.model_seconds += other.model_seconds;
        self.tool_seconds += other.tool_seconds;
    }
}

impl RunCost {
    /// Returns the number of tokens, prompts and completions together.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

/// Returns the first line of a text; empty if it has none.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the cost of a run, in total and by stage.
pub fn costs(events: &[Event]) -> (RunCost, BTreeMap<String, StageCost>) {
    let mut counter = CostCounter::default();
    events.iter().for_each(|event| counter.add(event));
    counter.finish()
}

/// Sums the cost of a run's events.
#[derive(Default)]
pub struct CostCounter {
    cost: RunCost,
    stages: BTreeMap<String, StageCost>,
    /// Whether fixed rules take the place of a model.
    follows_rules: bool,
    /// Cost of calls whose stage has not ended yet.
    open: StageCost,
    dollars: Option<Option<f64>>,
}

impl CostCounter {
    /// Adds the cost of an event. Events must come in the order of the trajectory.
    pub fn add(&mut self, event: &Event) {
        let CostCounter {
            cost,
            stages,
            follows_rules,
            open,
            dollars,
        } = self;
        match event {
            // The model of a rule-based approach has the name of the approach.
            Event::Started(started) => {
                *follows_rules = started.approach.split(':').next() == Some(started.model.as_str());
            }
            Event::Reply {
                purpose,
                reply,
                seconds,
                ..
            } => {
                let usage = &reply.usage;
                let calls = u32::from(!*follows_rules);
                cost.model_calls += calls;
                cost.failed_calls += reply.failed_tries;
                cost.malformed_calls += u32::try_from(reply.malformed.len()).unwrap_or(u32::MAX);
                cost.prompt_tokens = cost.prompt_tokens.saturating_add(usage.prompt_tokens);
                cost.cached_tokens = cost.cached_tokens.saturating_add(usage.cached_tokens);
                cost.completion_tokens = cost
                    .completion_tokens
                    .saturating_add(usage.completion_tokens);
                cost.model_seconds += seconds;
                let sum = dollars.unwrap_or(Some(0.0));
                *dollars = Some(sum.zip(usage.dollars).map(|(a, b)| a + b));
                let call = StageCost {
                    model_calls: calls,
                    tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
                    model_seconds: *seconds,
                    tool_seconds: 0.0,
                };
                match purpose {
                    Purpose::Prompt => open.add(call),
                    Purpose::Step => stages.entry("step".to_owned()).or_default().add(call),
                    Purpose::Review => stages.entry("review".to_owned()).or_default().add(call),
                }
            }
            Event::Answer(answer) => {
                cost.tool_calls += 1;
                cost.tool_seconds += answer.seconds;
                let stage = match answer.tool.as_str() {
                    RunPytest::NAME => "run",
                    Submit::NAME => "submit",
                    tool => tool,
                };
                stages.entry(stage.to_owned()).or_default().tool_seconds += answer.seconds;
            }
            Event::Stage { stage, .. } => {
                let done = std::mem::take(open);
                stages.entry(stage.clone()).or_default().add(done);
            }
            _ => {}
        }
    }

    /// Returns the cost in total and by stage. Calls whose stage has not ended count as the stage `incomplete`.
    pub fn finish(mut self) -> (RunCost, BTreeMap<String, StageCost>) {
        if self.open != StageCost::default() {
            let rest = self.stages.entry("incomplete".to_owned());
            rest.or_default().add(self.open);
        }
        self.cost.dollars = self.dollars.unwrap_or(Some(0.0));
        (self.cost, self.stages)
    }
}

impl RunRecord {
    /// Builds the record of a run. `outcome` is the current outcome, or the recorded one if the run had already ended.
    pub fn from_events(cell: &RunSpec, events: &[Event], outcome: &Outcome) -> Self {
        let (cost, stages) = costs(events);
        let patch = outcome.patch().filter(|patch| !patch.trim().is_empty());
        let status = match patch {
            Some(_) => RunStatus::Submitted,
            None if outcome.is_final() => RunStatus::NothingSubmitted,
            None => RunStatus::Infrastructure,
        };
        RunRecord {
            instance_id: cell.instance.clone(),
            approach: cell.system.approach.clone(),
            model: cell.system.model.clone(),
            sample: cell.sample,
            status,
            outcome: first_line(&outcome.summary()),
            patch: patch.map(str::to_owned),
            confidence: outcome.confidence(),
            cost,
            stages,
        }
    }

    /// Copies the seconds of the recording, because a replay measures none.
    pub fn take_seconds(&mut self, recorded: &RunRecord) {
        self.cost.model_seconds = recorded.cost.model_seconds;
        self.cost.tool_seconds = recorded.cost.tool_seconds;
        for (name, stage) in &mut self.stages {
            let recorded = recorded.stages.get(name).copied().unwrap_or_default();
            stage.model_seconds = recorded.model_seconds;
            stage.tool_seconds = recorded.tool_seconds;
        }
    }

    /// Returns the name of the run's prediction set.
    pub fn prediction_set(&self) -> String {
        let system = System {
            approach: self.approach.clone(),
            model: self.model.clone(),
            ..System::default()
        };
        system.prediction_set(self.sample)
    }
}

/// Key of a line of `runs.jsonl`.
pub(super) type RunKey = (String, String, String, u32);

impl Record for RunRecord {
    type Key = RunKey;
    const WHAT: &'static str = "a run";

    fn key(&self) -> RunKey {
        (
            self.instance_id.clone(),
            self.approach.clone(),
            self.model.clone(),
            self.sample,
        )
    }
}

impl RunSpec {
    /// Returns the key of the run's record in `runs.jsonl`.
    pub fn key(&self) -> RunKey {
        (
            self.instance.clone(),
            self.system.approach.clone(),
            self.system.model.clone(),
            self.sample,
        )
    }
}

/// Runs of a folder, open for reading and appending.
pub(super) type RunsFile = RecordFile<RunRecord>;

/// Opens the runs of a folder.
pub(super) fn open_runs(folder: &Path) -> Result<RunsFile> {
    RecordFile::open(folder.join(RUNS))
}

/// Reads the runs of a folder.
pub(super) fn stored_runs(folder: &Path) -> Result<BTreeMap<RunKey, RunRecord>> {
    RunsFile::read(&folder.join(RUNS))
}

#[cfg(test)]
mod tests;
