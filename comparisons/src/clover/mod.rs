//! Runs CLOVER's tasks with models and agents: prompts, replies, and the folder of an evaluation.
//!
//! Generating problems and grading answers is in `testwright_evals::clover`, which does not depend on models.

pub mod agents;
pub mod asking;
pub mod evaluation;
pub mod plan;
pub mod prompts;
pub mod replies;

/// File of model replies, one per line.
pub const REPLIES: &str = "replies.jsonl";
/// File of grades, one per line.
pub const JUDGEMENTS: &str = "judgements.jsonl";
/// Folder of agent runs, with a folder for each.
pub const RUNS: &str = "runs";
/// File of the plan.
pub const PLAN: &str = "clover.json";
