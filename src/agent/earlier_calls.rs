//! Calls of one message depend on those before them: what follows a refused edit is skipped, and a submission is held back
//! where the run or the fix before it does not speak for the test.

use testwright_agent_prompts::{HeldBack, Prompt, Skipped};
use testwright_tools::outcomes::report::Outcome as TestOutcome;
use testwright_tools::tool::{AnyTool, Effect, Route, Tool};
use testwright_tools::tools::RunPytest;

use super::Outcome;
use super::failures::prompt;
use super::fix_trials::RecordedTrial;
use super::run_counts::RunCounts;
use crate::model::ToolCall;
use crate::trajectory::Answer;

/// What the calls of this message did so far.
#[derive(Default)]
pub(super) struct EarlierCalls {
    is_edit_refused: bool,
    /// Why the tests should be looked at before they are submitted.
    unclean: Option<&'static str>,
}

impl EarlierCalls {
    /// The answer to a call that is not to be carried out.
    pub fn declines(&self, tool: &dyn AnyTool, call: &ToolCall) -> Result<Option<String>, Outcome> {
        let is_of_tests = tool.runs_code() && (tool.route() != Route::Sandbox || takes_tests(tool));
        let is_abstention = call.arguments.value()["reproducible"] == false;
        if self.is_edit_refused && is_of_tests && !is_abstention {
            let keeps_fix = tool.route() == Route::Fork;
            return prompt(Skipped { keeps_fix }.render()).map(Some);
        }
        match self.unclean {
            Some(why) if tool.route() == Route::Gate && !is_abstention => {
                let why = why.to_owned();
                prompt(HeldBack { why }.render()).map(Some)
            }
            _ => Ok(None),
        }
    }

    pub fn note(&mut self, tool: &dyn AnyTool, answer: &Answer) {
        let is_edit = tool.effect() == Effect::Writes && !tool.runs_code();
        self.is_edit_refused |= is_edit && answer.refused;
        if is_edit && !answer.refused {
            // What ran before it ran on other files.
            self.unclean = None;
        }
        if tool.route() == Route::Fork {
            let trials = RecordedTrial::read(&answer.data, 0);
            let passes = |trial: &&RecordedTrial| {
                let outcomes = &trial.trial.outcomes;
                let is_passed =
                    |(_, outcome): &(String, TestOutcome)| *outcome == TestOutcome::Passed;
                !outcomes.is_empty() && outcomes.iter().all(is_passed)
            };
            let passing: Vec<&RecordedTrial> = trials.iter().filter(passes).collect();
            if answer.refused {
                self.unclean = Some("the fix before it was refused");
            } else if passing.is_empty() {
                self.unclean = Some("with the fix before it the tests do not all pass");
            } else if passing.iter().all(|trial| !trial.trial.breaks.is_empty()) {
                self.unclean = Some("the fix before it breaks existing tests");
            }
        } else if takes_tests(tool) {
            let counts = RunCounts::read(&answer.data);
            if answer.refused {
                self.unclean = Some("the run of the tests before it was refused");
            } else if counts.is_some_and(|counts| !counts.shows_failure()) {
                self.unclean = Some("in the run before it no test fails, or some do not run");
            }
        }
    }
}

/// Does it run tests in the workspace itself?
pub(super) fn takes_tests(tool: &dyn AnyTool) -> bool {
    tool.name() == RunPytest::NAME
}
