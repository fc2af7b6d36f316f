//! Trial runs of candidate fixes, each in a copy of the sandbox: when the model asks for one, and again when
//! it submits tests.

use std::time::Duration;

use serde_json::{Value, json};
use testwright_tools::tool::Tool;
use testwright_tools::tools::TryFix;

use super::fix_trials::{RecordedTrial, add_origin, digest, latest_versions};
use super::{Flow, Run};
use crate::gate::{FixTrial, TestEvidence};

/// Maximum number of candidate fixes that are tried again when tests are submitted.
const MAX_RETRIED_FIXES: usize = 3;

impl Run {
    pub(super) async fn call_in_fork(
        &mut self,
        tool: &str,
        mut arguments: Value,
        deadline: Duration,
    ) -> Flow<(String, bool, Value)> {
        let edits = self.complete_edits(&arguments);
        if let Some(arguments) = arguments.as_object_mut()
            && !edits.is_empty()
        {
            arguments.insert("edits".to_owned(), edits.clone().into());
        }
        let called = self.session.call_in_fork(tool, arguments, deadline);
        let mut answer = called.await?;
        add_origin(&mut answer.data, edits.into(), digest(&self.state));
        if !answer.refused {
            self.record_trial(&answer.data);
        }
        Ok((answer.text, answer.refused, answer.data))
    }

    pub(super) fn record_trial(&mut self, data: &Value) {
        let call = self.fix_calls;
        self.fix_calls += 1;
        self.trials.extend(RecordedTrial::read(data, call));
        if let Some(edits) = data["edits"].as_array() {
            self.last_fix.clone_from(edits);
        }
    }

    /// Records a fix as the last one even if its trial is skipped.
    pub(super) fn set_last_fix(&mut self, arguments: &Value) {
        self.last_fix = self.complete_edits(arguments);
    }

    /// Returns all edits of a call: those of the last fix if it gives none, or those before its own if it
    /// adds to them.
    fn complete_edits(&self, arguments: &Value) -> Vec<Value> {
        let edits = arguments["edits"].as_array().cloned().unwrap_or_default();
        let is_on_top = edits.is_empty() || arguments["on_top"] == true;
        let earlier = self.last_fix.iter().filter(|_| is_on_top);
        earlier.cloned().chain(edits).collect()
    }

    /// Tries the last form of each candidate fix on the tests as they are now. If a fix cannot be tried
    /// again, the earlier result counts.
    pub(super) async fn trials_on_submitted_tests(
        &mut self,
        failing: &[TestEvidence],
        deadline: Duration,
    ) -> Flow<Vec<FixTrial>> {
        let now = digest(&self.state);
        let mut trials = Vec::new();
        let latest = latest_versions(&self.trials).into_iter().rev();
        for recorded in latest.take(MAX_RETRIED_FIXES) {
            let mut trial = recorded.trial.clone();
            let is_of_all = failing.iter().all(|test| {
                let mut outcomes = trial.outcomes.iter();
                outcomes.any(|(id, _)| *id == test.id)
            });
            if recorded.state == now && (is_of_all || trial.crash.is_some()) {
                trial.on_submitted_tests = true;
            } else if !recorded.edits.is_empty() {
                let arguments = json!({ "edits": recorded.edits });
                let called = self.session.call_in_fork(TryFix::NAME, arguments, deadline);
                let answer = called.await?;
                let again = RecordedTrial::read(&answer.data, recorded.call);
                if let [again] = again.as_slice() {
                    trial = again.trial.clone();
                    trial.on_submitted_tests = true;
                }
            }
            trial.origin = Some(recorded.call);
            let ran = |test: &TestEvidence| trial.outcomes.iter().any(|(id, _)| *id == test.id);
            if trial.crash.is_some() || failing.iter().any(ran) {
                trials.push(trial);
            }
        }
        trials.reverse();
        Ok(trials)
    }
}
