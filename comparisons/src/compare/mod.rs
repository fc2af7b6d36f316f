//! Comparisons: every approach × model × instance × sample under the same limits. Each run has its own folder and
//! resumes after an interruption; its result is a line of `runs.jsonl`.

pub mod cell_run;
mod estimate;
mod given;
mod plan;
mod plan_request;
mod predictions;
mod recorded_model;
pub mod report;
mod run_record;
mod runs;
mod schedule;
mod trajectory_page;

use sha2::{Digest, Sha256};
use testwright_config::hex::hex;

pub use estimate::Estimate;
pub use given::{Inputs, InstanceInputs, inputs};
pub use plan::{Plan, PlanLimits, PlannedGiven, PlannedInstance, RunSpec, System};
pub use plan_request::PlanRequest;
pub use predictions::{prediction_files, prediction_sets, write_predictions};
pub(crate) use run_record::first_line;
pub use run_record::{CostCounter, RunCost, RunRecord, RunStatus, StageCost, costs};
pub use runs::{RemoteRuns, Schedule};
pub use schedule::{Step, StepListener, Summary};
pub use trajectory_page::write as write_trajectory_page;

/// File of the plan.
pub const PLAN: &str = "comparison.json";
const RUNS: &str = "runs.jsonl";
/// Maximum runs that are requested from the workers of a database at once.
pub const REMOTE_RUNS: usize = 256;
/// Folder of the grader's results.
pub const GRADING: &str = "grading";
/// Folder of the predictions.
pub const PREDICTIONS: &str = "predictions";

/// Maximum characters of an encoded name; file systems allow 255.
const MAX_ENCODED_LEN: usize = 200;

/// Encodes a name for use as a file or folder name, without collisions. A long name ends with its digest.
pub fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'@' | b'=' => {
                text.push(char::from(byte));
            }
            b'.' if !text.is_empty() => text.push('.'),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    if text.len() > MAX_ENCODED_LEN {
        let digest = hex(&Sha256::digest(name));
        text.truncate(MAX_ENCODED_LEN - digest.len());
        text.push_str(&digest);
    }
    text
}

#[cfg(test)]
mod tests;
