//! CLOVER's tasks put to models and agents: prompts, replies, and what a folder of an evaluation holds.
//!
//! How problems are made and answers judged is `testwright_evals::clover`'s, which knows no model.

pub mod agents;
pub mod asking;
pub mod evaluation;
pub mod plan;
pub mod prompts;
pub mod replies;

/// Model calls, a line each.
pub const REPLIES: &str = "replies.jsonl";
/// What answers are worth, a line each.
pub const JUDGEMENTS: &str = "judgements.jsonl";
/// Runs of agents, a folder each.
pub const RUNS: &str = "runs";
/// What is asked.
pub const PLAN: &str = "clover.json";
/// Dollars of the calls.
pub const SPENDING: &str = "spending.jsonl";
