//! The approach without a language model: a rule-based model uses the same loop, tools and gate.

use testwright_agent_prompts::{Prompt, SnippetSystem, Task};
use testwright_tools::tool::AnyTool;
use testwright_tools::tools::{
    FindFile, InsertFunction, OpenFile, Outline, ReadFunction, Revert, RewriteFunction, RunPytest,
    RunPython, Search, Submit,
};

use super::{Approach, ApproachContext, ModelKind, Workflow, begin};
use crate::agent::{Flow, LoopConfig, NoHook, OnSubmit, Outcome, Run, SubmissionPolicy, run_loop};

/// Tools in the order in which they are offered.
static TOOLS: &[&dyn AnyTool] = &[
    &Search,
    &FindFile,
    &OpenFile,
    &Outline,
    &ReadFunction,
    &RunPython,
    &InsertFunction,
    &RewriteFunction,
    &Revert,
    &RunPytest,
    &Submit,
];

pub(super) static APPROACH: Approach = Approach {
    model: ModelKind::Rules("snippet"),
    tools: || TOOLS.to_vec(),
    ..Approach::new(
        "snippet",
        "no language model: fixed rules turn the code in the issue into a test; needs no API key",
        Workflow::Agent {
            prompts: &[SnippetSystem::NAME, Task::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    run.set_submission_policy(SubmissionPolicy {
        feedback: true,
        ..SubmissionPolicy::default()
    });
    begin(run, &SnippetSystem {}, &context.notes).await?;
    let config = LoopConfig {
        tools: TOOLS.to_vec(),
        parallel_calls: false,
        // A reply without a call is final: it says why there is no test.
        max_empty_replies: 1,
        on_submit: OnSubmit::UntilAccepted,
    };
    Ok(run_loop(run, &config, &mut NoHook).await)
}
