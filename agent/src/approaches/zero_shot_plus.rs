//! ZeroShotPlus (SWT-bench §4.1): like `zero-shot`, but the answer consists of complete functions, which
//! tolerates wrong line numbers.

use testwright_agent_prompts::{Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::extra_inputs;
use super::stages::{retrieve, system_and_user, write_and_hand_in};
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
        |run, context| Box::pin(sample(run, context, 0.0)),
    )
};

/// Retrieves code, makes one call, and submits the result.
pub(super) async fn sample(
    run: &mut Run,
    context: &ApproachContext,
    temperature: f64,
) -> Flow<Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, context, true)?;
    let messages = system_and_user(&ZeroShotPlusSystem {}, &task)?;
    write_and_hand_in(run, &tree, messages, temperature, function_blocks::read).await
}
