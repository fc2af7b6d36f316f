//! Runs of candidate fixes, each in a copy of the sandbox: when the model asks for one, and again when it submits its tests.

use std::time::Duration;

use serde_json::{Value, json};
use testwright_tools::tool::Tool;
use testwright_tools::tools::TryFix;

use super::failures::infrastructure;
use super::fix_trials::{RecordedTrial, add_origin, digest, last_forms};
use super::{Flow, Run};
use crate::gate::{FixTrial, TestEvidence};

/// Candidate fixes that are tried once more when tests are submitted.
const MAX_RETRIED_FIXES: usize = 3;

impl Run {
    pub(super) async fn call_in_fork(
        &mut self,
        tool: &str,
        mut arguments: Value,
        deadline: Duration,
    ) -> Flow<(String, bool, Value)> {
        let edits = self.whole_fix(&arguments);
        if let Some(arguments) = arguments.as_object_mut()
            && !edits.is_empty()
        {
            arguments.insert("edits".to_owned(), edits.clone().into());
        }
        let called = self.session.call_in_fork(tool, arguments, deadline);
        let mut answer = called.await.map_err(infrastructure)?;
        add_origin(&mut answer.data, edits.into(), digest(&self.state));
        if !answer.refused {
            self.book_trial(&answer.data);
        }
        Ok((answer.text, answer.refused, answer.data))
    }

    pub(super) fn book_trial(&mut self, data: &Value) {
        let call = self.fix_calls;
        self.fix_calls += 1;
        self.trials.extend(RecordedTrial::read(data, call));
        if let Some(edits) = data["edits"].as_array() {
            self.last_fix.clone_from(edits);
        }
    }

    /// A fix whose trial is skipped is the last one all the same.
    pub(super) fn keep_fix(&mut self, arguments: &Value) {
        self.last_fix = self.whole_fix(arguments);
    }

    /// The edits of a call: those of the last fix where it gives none, and before its own where they come on top.
    fn whole_fix(&self, arguments: &Value) -> Vec<Value> {
        // A list that was written as a string is read by the toolbox.
        let given = match &arguments["edits"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            other => other.clone(),
        };
        let given = given.as_array().cloned().unwrap_or_default();
        let is_on_top = given.is_empty() || arguments["on_top"] == true;
        let earlier = if is_on_top {
            self.last_fix.clone()
        } else {
            Vec::new()
        };
        earlier.into_iter().chain(given).collect()
    }

    /// The last form of each candidate fix, tried on the tests as they are now; of those that cannot be tried again, what
    /// they did to the tests as they were then.
    pub(super) async fn trials_on_submitted_tests(
        &mut self,
        failing: &[TestEvidence],
        deadline: Duration,
    ) -> Flow<Vec<FixTrial>> {
        let now = digest(&self.state);
        let mut found = Vec::new();
        for recorded in last_forms(&self.trials)
            .into_iter()
            .rev()
            .take(MAX_RETRIED_FIXES)
        {
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
                let answer = called.await.map_err(infrastructure)?;
                let again = RecordedTrial::read(&answer.data, recorded.call);
                if let [again] = again.as_slice() {
                    trial = again.trial.clone();
                    trial.on_submitted_tests = true;
                }
            }
            trial.origin = Some(recorded.call);
            let ran = |test: &TestEvidence| trial.outcomes.iter().any(|(id, _)| *id == test.id);
            if trial.crash.is_some() || failing.iter().any(ran) {
                found.push(trial);
            }
        }
        found.reverse();
        Ok(found)
    }
}
