//! ZeroShotPlus (SWT-bench §4.1): as `zero-shot`, with an answer in whole functions, which is forgiving of line numbers.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::stages::CODE_TOKENS;
use super::zero_shot::in_one_call;
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Outcome, Run};
use crate::formats::function_blocks;

pub(super) struct ZeroShotPlus;

#[async_trait]
impl Approach for ZeroShotPlus {
    fn name(&self) -> &'static str {
        "zero-shot-plus"
    }

    fn description(&self) -> &'static str {
        "one call: as zero-shot, answered by whole functions"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Pipeline {
            stages: &["retrieve", "write"],
            model_calls: "1",
            prompts: &[ZeroShotPlusSystem::NAME, ZeroShotTask::NAME],
        }
    }

    async fn run(&self, run: &mut Run, _: &ApproachContext) -> Outcome {
        let system = ZeroShotPlusSystem {};
        let outcome = in_one_call(run, &system, CODE_TOKENS, function_blocks::read).await;
        outcome.unwrap_or_else(|outcome| outcome)
    }
}
