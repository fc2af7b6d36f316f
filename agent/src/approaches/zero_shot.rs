//! ZeroShot (SWT-bench §4.1): the issue and files found by BM25, one call, a unified diff.

use testwright_agent_prompts::{Prompt, ZeroShotSystem, ZeroShotTask};

use super::extra_inputs;
use super::stages::{retrieve, system_and_user, write_and_hand_in};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::unified_diff;

pub(super) static APPROACH: Approach = Approach {
    options: extra_inputs::OPTIONS,
    ..Approach::new(
        "zero-shot",
        "one call: the issue and files found by BM25, answered by a unified diff",
        Workflow::Pipeline {
            stages: &["retrieve", "write"],
            model_calls: "1",
            prompts: &[ZeroShotSystem::NAME, ZeroShotTask::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, context, false)?;
    let messages = system_and_user(&ZeroShotSystem {}, &task)?;
    write_and_hand_in(run, &tree, messages, 0.0, unified_diff::read).await
}
