//! What a pipeline does beside its model calls. Its stages are plain code; what they do in the sandbox goes through the
//! same tools as an agent's calls, and into the same record.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testwright_sandboxes::repository::Tree;
use testwright_tools::tool::{AnyTool, Tool};
use testwright_tools::tools::{RunPytest, Submit, TryFix};

use super::super::failures::infrastructure;
use super::super::run_counts::{FailureKind, RunCounts};
use super::super::submission_policy::OnSubmit;
use super::{Flow, Outcome, Run};
use crate::session::Contents;
use crate::trajectory::{Answer, Event};
use testwright_models::ToolCall;

/// What a stage may call.
static TOOLS: &[&dyn AnyTool] = &[&RunPytest, &TryFix, &Submit];

/// How tests that a draft adds or changes ended on the old code.
pub struct ChangedTests {
    /// How they fail, or cannot be run; `None` where none does.
    pub kind: Option<FailureKind>,
    /// At least one passes, and nothing is wrong.
    pub pass: bool,
    /// As an agent would see it, without hints on its tools.
    pub text: String,
}

impl Run {
    /// The files of the old code.
    pub fn tree(&self) -> Flow<Tree> {
        Tree::open(&self.source.archive).map_err(infrastructure)
    }

    /// Writes down what a stage came to.
    pub fn stage(&mut self, stage: &str, result: impl Into<String>) -> Flow {
        let result = result.into();
        self.progress.stage(stage, &result);
        if self.replay.has_stage() {
            return Ok(());
        }
        self.record(&Event::Stage {
            stage: stage.to_owned(),
            result,
        })
    }

    /// Brings the workspace into this state: the files by path, `None` for one that goes.
    pub async fn put_files(&mut self, files: &BTreeMap<String, Option<String>>) -> Flow {
        let encoded = |text: &Option<String>| text.as_ref().map(|text| STANDARD.encode(text));
        let contents: Contents = files
            .iter()
            .map(|(path, text)| (path.clone(), encoded(text)))
            .collect();
        self.put_contents(&contents).await
    }

    pub(in crate::agent) async fn put_contents(&mut self, contents: &Contents) -> Flow {
        if !self.replay.has_live_tools() && !self.replay.is_over() {
            return Ok(());
        }
        self.catch_up().await?;
        self.session
            .restore(contents)
            .await
            .map_err(infrastructure)?;
        self.record_state().await
    }

    /// Runs the tests that the workspace adds or changes.
    pub async fn run_changed_tests(&mut self) -> Flow<ChangedTests> {
        let answer = self.stage_call(RunPytest::NAME, json!({})).await?;
        let counts = RunCounts::read(&answer.data);
        // Hints on tools are for agents.
        let is_hint = |line: &&str| line.starts_with("not reached in ");
        let lines: Vec<&str> = answer
            .result
            .content
            .lines()
            .filter(|line| !is_hint(line))
            .collect();
        Ok(ChangedTests {
            kind: counts.and_then(RunCounts::kind),
            pass: counts.is_some_and(RunCounts::is_clean),
            text: lines.join("\n"),
        })
    }

    /// Hands in what is in the workspace; the gate decides, for the record.
    pub async fn hand_in(&mut self) -> Flow<Outcome> {
        let answer = self.stage_call(Submit::NAME, json!({})).await?;
        let refused = || Outcome::Nothing {
            reason: answer.result.content.clone(),
        };
        Ok(self
            .submitted(OnSubmit::Once, &answer)
            .unwrap_or_else(refused))
    }

    pub(in crate::agent) async fn stage_call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Flow<Answer> {
        let number: u32 = self.budget.spent.tool_calls.values().sum();
        let call = ToolCall {
            id: format!("stage-{}", number + 1),
            name: tool.to_owned(),
            arguments: arguments.into(),
        };
        self.call(&call, TOOLS).await
    }
}
