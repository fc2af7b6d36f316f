//! Dependencies between the calls of one message. Calls after a refused edit are skipped. A submission is
//! held back if no test fails in the run before it, or if tests fail with the fix before it.

use testwright_agent_prompts::{HeldBack, Prompt, Skipped};
use testwright_tools::outcomes::report::Outcome as TestOutcome;
use testwright_tools::tool::{AnyTool, Effect, Route, Tool};
use testwright_tools::tools::RunPytest;

use super::Flow;
use super::fix_trials::RecordedTrial;
use super::run_counts::RunCounts;
use crate::trajectory::RecordedAnswer;
use testwright_models::ToolCall;

/// The results of this message's earlier calls.
#[derive(Default)]
pub(super) struct CallDependencies {
    is_edit_refused: bool,
    /// Reason from the last test run to look at the tests before they are submitted.
    run: Option<&'static str>,
    /// Reason from the last trial of a fix.
    fix: Option<&'static str>,
}

impl CallDependencies {
    /// Returns the answer to a call that should not run.
    pub(super) fn declines(&self, tool: &dyn AnyTool, call: &ToolCall) -> Flow<Option<String>> {
        let is_of_tests = tool.runs_code() && (tool.route() != Route::Sandbox || takes_tests(tool));
        let checked = tool.check(call.arguments.value());
        let is_abstention = (checked.as_ref()).is_ok_and(|fields| fields["reproducible"] == false);
        if self.is_edit_refused && is_of_tests && !is_abstention {
            let keeps_fix = tool.route() == Route::Fork && checked.is_ok();
            return Ok(Some(Skipped { keeps_fix }.render()?));
        }
        match self.run.or(self.fix) {
            Some(why) if tool.route() == Route::Gate && !is_abstention => {
                let why = why.to_owned();
                Ok(Some(HeldBack { why }.render()?))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn note(&mut self, tool: &dyn AnyTool, answer: &RecordedAnswer) {
        let is_edit = tool.effect() == Effect::Writes && !tool.runs_code();
        self.is_edit_refused |= is_edit && answer.refused;
        if is_edit && !answer.refused {
            // An earlier run used other files.
            (self.run, self.fix) = (None, None);
        }
        if tool.route() == Route::Fork {
            let trials = RecordedTrial::read(&answer.data, 0);
            // A trial on other tests says nothing about the submitted ones.
            if !answer.refused && !trials.iter().any(|trial| trial.contributed) {
                return;
            }
            let passes = |trial: &&RecordedTrial| {
                let outcomes = &trial.trial.outcomes;
                let is_passed =
                    |(_, outcome): &(String, TestOutcome)| *outcome == TestOutcome::Passed;
                !outcomes.is_empty() && outcomes.iter().all(is_passed)
            };
            let passing: Vec<&RecordedTrial> = trials.iter().filter(passes).collect();
            self.fix = if answer.refused {
                Some("the fix before it was refused")
            } else if passing.is_empty() {
                Some("with the fix before it the tests do not all pass")
            } else if passing.iter().all(|trial| !trial.trial.breaks.is_empty()) {
                Some("the fix before it breaks existing tests")
            } else {
                None
            };
        } else if takes_tests(tool) {
            let counts = RunCounts::read(&answer.data);
            self.run = match counts {
                _ if answer.refused => Some("the run of the tests before it was refused"),
                Some(counts) if !counts.has_contributed() => return,
                Some(counts) if !counts.shows_failure() => {
                    Some("in the run before it no test fails, or some do not run")
                }
                _ => None,
            };
        }
    }
}

/// Returns whether a tool runs tests in the workspace itself.
pub(super) fn takes_tests(tool: &dyn AnyTool) -> bool {
    tool.name() == RunPytest::NAME
}

#[cfg(test)]
mod tests;
