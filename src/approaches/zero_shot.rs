//! ZeroShot (SWT-bench §4.1): the issue and files found by BM25, one call, a unified diff.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, ZeroShotSystem, ZeroShotTask};

use super::stages::{CODE_TOKENS, ReplyFormat, retrieve, system_and_user, write_and_hand_in};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Outcome, Run};
use crate::formats::unified_diff;

pub(super) struct ZeroShot;

#[async_trait]
impl Approach for ZeroShot {
    fn name(&self) -> &'static str {
        "zero-shot"
    }

    fn description(&self) -> &'static str {
        "one call: the issue and files found by BM25, answered by a unified diff"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Pipeline {
            stages: &["retrieve", "write"],
            model_calls: "1",
            prompts: &[ZeroShotSystem::NAME, ZeroShotTask::NAME],
        }
    }

    async fn run(&self, run: &mut Run, _: &ApproachContext) -> Outcome {
        let outcome = in_one_call(run, &ZeroShotSystem {}, CODE_TOKENS, unified_diff::read).await;
        outcome.unwrap_or_else(|outcome| outcome)
    }
}

/// Retrieves, asks once, hands in what comes back.
pub(super) async fn in_one_call(
    run: &mut Run,
    system: &(impl Prompt + Sync),
    code_tokens: usize,
    format: ReplyFormat,
) -> Result<Outcome, Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, code_tokens)?;
    let messages = system_and_user(system, &task)?;
    write_and_hand_in(run, &tree, messages, format).await
}
