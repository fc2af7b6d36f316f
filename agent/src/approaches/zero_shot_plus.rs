//! ZeroShotPlus (SWT-bench §4.1): like `zero-shot`, but the answer consists of complete functions, which
//! tolerates wrong line numbers.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::extra_inputs;
use super::zero_shot::{OneCall, in_one_call};
use super::{Approach, ApproachContext, ApproachOption, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::function_blocks;

pub(super) struct ZeroShotPlus;

#[async_trait]
impl Approach for ZeroShotPlus {
    fn name(&self) -> &'static str {
        "zero-shot-plus"
    }

    fn description(&self) -> &'static str {
        "one call: like zero-shot, but answered by complete functions"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Pipeline {
            stages: &["retrieve", "write"],
            model_calls: "1",
            prompts: &[ZeroShotPlusSystem::NAME, ZeroShotTask::NAME],
        }
    }

    fn options(&self) -> &'static [ApproachOption] {
        extra_inputs::OPTIONS
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
        let call = OneCall {
            system: ZeroShotPlusSystem {},
            temperature: 0.0,
            format: function_blocks::read,
            are_numbered: true,
        };
        in_one_call(run, context, &call).await
    }
}
