//! The agent loop: ask the model, run its calls and record them, until the gate accepts a test or a budget
//! ends. [`run_loop`] is the loop itself; [`Run`] holds what a step needs.
//!
//! Invariants:
//!
//! - Budgets are checked before they are spent.
//! - Messages are only appended.
//! - Every step is on disk before the next one starts.
//! - The end of a run is data ([`Outcome`]), and propagates with `?` ([`Flow`]).
//!
//! A resumed run replays its recorded events through the same code, so the trajectory is the only saved
//! state.

mod agent_loop;
pub mod budget;
mod compaction;
mod drafts;
mod earlier_calls;
mod failures;
mod fix_trials;
mod full_issue;
mod processor;
mod progress;
mod repetition;
mod replay;
mod review;
mod run;
mod run_counts;
mod submission_policy;
mod submission_record;
mod submit;
mod submit_coverage;
mod token_shares;
mod trial_runs;

pub use crate::outcome::{Flow, Limit, Outcome};
pub use agent_loop::{Hook, LOOP_PROMPTS, LoopConfig, NoHook, run_loop};
pub use budget::{Budget, Limits, RunUsage};
pub use drafts::Drafts;
pub(crate) use full_issue::numbered_lines;
pub use processor::CpuPermit;
pub use progress::{NotesToLog, Progress, StepView};
pub use replay::{Replay, ReplayDifference};
pub use run::{ChangedTests, Run, RunParts};
pub use run_counts::FailureKind;
pub use submission_policy::{OnSubmit, SubmissionPolicy};
pub use token_shares::TokenShares;
