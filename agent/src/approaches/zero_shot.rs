//! ZeroShot (SWT-bench §4.1): the issue and files found by BM25, one call, a unified diff.

use testwright_agent_prompts::{Prompt, ZeroShotSystem, ZeroShotTask};

use super::extra_inputs;
use super::stages::{ReplyFormat, retrieve, system_and_user, write_and_hand_in};
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
    let call = OneCall {
        system: ZeroShotSystem {},
        temperature: 0.0,
        format: unified_diff::read,
        are_numbered: false,
    };
    in_one_call(run, context, &call).await
}

/// A method that makes one call.
pub(super) struct OneCall<S> {
    pub system: S,
    pub temperature: f64,
    pub format: ReplyFormat,
    /// Whether the lines of the shown files are numbered.
    pub are_numbered: bool,
}

/// Retrieves code, makes one call, and submits the result.
pub(super) async fn in_one_call(
    run: &mut Run,
    context: &ApproachContext,
    call: &OneCall<impl Prompt + Sync>,
) -> Flow<Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, context, call.are_numbered)?;
    let messages = system_and_user(&call.system, &task)?;
    write_and_hand_in(run, &tree, messages, call.temperature, call.format).await
}
