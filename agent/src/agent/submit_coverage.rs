//! Handles a test that is wanted for coverage of given lines; only the gate decides on it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Flow, Run};
use crate::gate::{self, CoverageVerdict, Evidence};
use crate::trajectory::RecordedAnswer;

/// The result of one submission, as stored in the trajectory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CoverageRecord {
    patch: String,
    coverage: CoverageVerdict,
}

impl Run {
    pub(super) async fn submit_for_coverage(
        &mut self,
        arguments: &Value,
        deadline: Duration,
    ) -> Flow<(String, bool, Value)> {
        let check = gate::check_coverage(&self.session, &self.source, arguments, deadline).await;
        let record = match check {
            Ok((patch, coverage)) => CoverageRecord { patch, coverage },
            Err(error) => return Ok((error.refusal()?, true, Value::Null)),
        };
        self.record_coverage(&record);
        let data = serde_json::to_value(&record).unwrap_or_default();
        Ok((record.coverage.text(), false, data))
    }

    /// Restores the facts of a recorded answer in a resumed run.
    pub(super) fn take_coverage(&mut self, answer: &RecordedAnswer) {
        if let Ok(record) = CoverageRecord::deserialize(&answer.data) {
            self.record_coverage(&record);
        }
    }

    fn record_coverage(&mut self, record: &CoverageRecord) {
        let verdict = &record.coverage;
        self.submission = verdict.accepted().then(|| {
            let mut evidence = Evidence {
                passing: verdict.passing.clone(),
                covered: verdict.hit.clone(),
                python: Some(self.python()),
                dropped: verdict.dropped.clone(),
                ..Evidence::default()
            };
            self.add_spent(&mut evidence);
            (record.patch.clone(), Box::new(evidence))
        });
    }
}
