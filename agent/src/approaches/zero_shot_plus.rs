//! ZeroShotPlus (SWT-bench §4.1): like `zero-shot`, but the answer consists of complete functions, which
//! tolerates wrong line numbers.

use testwright_agent_prompts::{Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::extra_inputs;
use super::zero_shot::{OneCall, in_one_call};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::function_blocks;

pub(super) static APPROACH: Approach = Approach {
    options: extra_inputs::OPTIONS,
    ..Approach::new(
        "zero-shot-plus",
        "one call: like zero-shot, but answered by complete functions",
        Workflow::Pipeline {
            stages: &["retrieve", "write"],
            model_calls: "1",
            prompts: &[ZeroShotPlusSystem::NAME, ZeroShotTask::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let call = OneCall {
        system: ZeroShotPlusSystem {},
        temperature: 0.0,
        format: function_blocks::read,
        are_numbered: true,
    };
    in_one_call(run, context, &call).await
}
