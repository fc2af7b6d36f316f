//! Runs of candidate fixes, each in a copy of the sandbox: when the model asks for one, and again when it submits its tests.

use std::time::Duration;

use serde_json::{Value, json};
use testwright_tools::tool::Tool;
use testwright_tools::tools::TryFix;

use super::failures::infrastructure;
use super::fix_trials::{RecordedTrial, add_origin, digest, last_forms};
use super::{Outcome, Run};
use crate::gate::{FixTrial, TestEvidence};

/// Candidate fixes that are tried once more when tests are submitted.
const MOST_RETRIED: usize = 3;

impl Run {
    pub(super) async fn call_in_fork(
        &mut self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<(String, bool, Value), Outcome> {
        let edits = arguments.get("edits").cloned().unwrap_or_default();
        let called = self.session.call_in_fork(tool, arguments, deadline);
        let mut answer = called.await.map_err(infrastructure)?;
        add_origin(&mut answer.data, edits, digest(&self.state));
        if !answer.refused {
            self.book_trial(&answer.data);
        }
        Ok((answer.text, answer.refused, answer.data))
    }

    pub(super) fn book_trial(&mut self, data: &Value) {
        let call = self.trials.last().map_or(0, |last| last.call + 1);
        self.trials.extend(RecordedTrial::read(data, call));
    }

    /// The last form of each candidate fix, tried on the tests as they are now; of those that cannot be tried again, what
    /// they did to the tests as they were then.
    pub(super) async fn trials_on_submitted_tests(
        &mut self,
        failing: &[TestEvidence],
        deadline: Duration,
    ) -> Result<Vec<FixTrial>, Outcome> {
        let now = digest(&self.state);
        let mut found = Vec::new();
        for recorded in last_forms(&self.trials)
            .into_iter()
            .rev()
            .take(MOST_RETRIED)
        {
            let mut trial = recorded.trial.clone();
            if recorded.state == now {
                trial.on_submitted_tests = true;
            } else if recorded.edits.is_array() {
                let arguments = json!({ "edits": recorded.edits });
                let called = self.session.call_in_fork(TryFix::NAME, arguments, deadline);
                let answer = called.await.map_err(infrastructure)?;
                if let Some(again) = RecordedTrial::read(&answer.data, recorded.call) {
                    trial = again.trial;
                    trial.on_submitted_tests = true;
                }
            }
            let ran = |test: &TestEvidence| trial.outcomes.iter().any(|(id, _)| *id == test.id);
            if trial.crash.is_some() || failing.iter().any(ran) {
                found.push(trial);
            }
        }
        found.reverse();
        Ok(found)
    }
}
