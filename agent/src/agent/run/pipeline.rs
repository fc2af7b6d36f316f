//! The actions of a pipeline besides its model calls. Its stages are plain code. In the sandbox they use the
//! same tools as an agent's calls, and the same record.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testwright_sandboxes::repository::{self, File, Files, Tree};
use testwright_tools::tool::{AnyTool, Tool};
use testwright_tools::tools::{RunPytest, Submit, TryFix};

use super::super::run_counts::{FailureKind, RunCounts};
use super::super::submission_policy::OnSubmit;
use super::{Flow, Outcome, Run};
use crate::session::Contents;
use crate::trajectory::{Event, RecordedAnswer};
use testwright_models::ToolCall;

/// Tools that a stage may call.
static TOOLS: &[&dyn AnyTool] = &[&RunPytest, &TryFix, &Submit];

/// The result on the old code of tests that a draft adds or changes.
pub struct ChangedTests {
    /// Kind of failure; `None` if no test fails.
    pub kind: Option<FailureKind>,
    /// Whether at least one test passes and there is no failure.
    pub pass: bool,
    /// Result as an agent would see it, without hints about tools.
    pub text: String,
}

impl Run {
    /// Returns the files of the old code.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the old code cannot be read.
    pub fn tree(&self) -> Flow<Tree> {
        Ok(Tree::open(&self.source.archive)?)
    }

    /// Records the result of a stage.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the result cannot be recorded.
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

    /// Puts the workspace into this state: contents by path, `None` to delete a file.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox or the record fails.
    pub async fn write_files(&mut self, files: &BTreeMap<String, Option<String>>) -> Flow {
        let encoded = |text: &Option<String>| text.as_ref().map(|text| STANDARD.encode(text));
        let contents = files
            .iter()
            .map(|(path, text)| (path.clone(), encoded(text)));
        self.write_contents(&contents.collect()).await
    }

    /// Applies a patch to the old code, and puts the files that it changes into the workspace.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run: the patch does not apply, or the sandbox or the record fails.
    pub async fn write_patch(&mut self, patch: &str) -> Flow {
        let applied = repository::apply(&self.tree()?, &Files::new(), patch)?;
        let applied =
            applied.map_err(|why| Outcome::nothing(format!("the patch does not apply: {why}")))?;
        let encoded = |file: Option<File>| file.map(|file| STANDARD.encode(file.content));
        let files = applied.files.into_iter();
        let contents = files.map(|(path, file)| (path, encoded(file))).collect();
        self.write_contents(&contents).await
    }

    pub(in crate::agent) async fn write_contents(&mut self, contents: &Contents) -> Flow {
        if !self.replay.has_live_tools() && !self.replay.is_over() {
            return Ok(());
        }
        self.restore_workspace().await?;
        self.session.restore(contents).await?;
        self.record_state().await
    }

    /// Runs the tests that the workspace adds or changes.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox or the record fails.
    pub async fn run_changed_tests(&mut self) -> Flow<ChangedTests> {
        let answer = self.stage_call(RunPytest::NAME, json!({})).await?;
        let counts = RunCounts::read(&answer.data);
        // Hints about tools are for agents only.
        let is_hint = |line: &&str| line.starts_with("not reached in ");
        let lines = answer.result.content.lines();
        let lines: Vec<&str> = lines.filter(|line| !is_hint(line)).collect();
        Ok(ChangedTests {
            kind: counts.and_then(RunCounts::kind),
            pass: counts.is_some_and(RunCounts::is_clean),
            text: lines.join("\n"),
        })
    }

    /// Submits the workspace for the record; the gate decides.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox or the record fails.
    pub async fn submit_tests(&mut self) -> Flow<Outcome> {
        let answer = self.stage_call(Submit::NAME, json!({})).await?;
        let outcome = self.outcome_after_submission(OnSubmit::Once, &answer);
        Ok(outcome.unwrap_or_else(|| Outcome::nothing(answer.result.content)))
    }

    pub(in crate::agent) async fn stage_call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Flow<RecordedAnswer> {
        let number: u32 = self.budget.spent.tool_calls.values().sum();
        let call = ToolCall::new(format!("stage-{}", number + 1), tool, arguments);
        self.call(&call, TOOLS).await
    }
}
