//! SWE-Agent (SWT-bench §4.1): one command at a time with a shell, a windowed viewer and a line editor. It is
//! not told to run its tests; the gate's decision on its submission is only recorded.

use testwright_agent_prompts::{Prompt, SweAgentSystem, Task};
use testwright_tools::tool::AnyTool;
use testwright_tools::tools::{CreateFile, EditLines, FindFile, OpenFile, Search, Shell, Submit};

use super::{Approach, ApproachContext, Workflow, begin};
use crate::agent::{Flow, Hook, LoopConfig, NoHook, OnSubmit, Outcome, Run, run_loop};

/// Tools in the order in which they are offered.
pub(super) static TOOLS: &[&dyn AnyTool] = &[
    &Shell,
    &OpenFile,
    &Search,
    &FindFile,
    &CreateFile,
    &EditLines,
    &Submit,
];

pub(super) static APPROACH: Approach = Approach {
    tools: || TOOLS.to_vec(),
    ..Approach::new(
        "swe-agent",
        "shell, viewer and line editor, one command at a time",
        Workflow::Agent {
            prompts: &[SweAgentSystem::NAME, Task::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let system = SweAgentSystem {
        max_steps: context.max_steps,
    };
    run_with_shell(run, &system, &context.notes, &mut NoHook).await
}

/// Runs one command at a time; the first submission ends the run.
pub(super) async fn run_with_shell(
    run: &mut Run,
    system: &(impl Prompt + Sync),
    notes: &[String],
    hook: &mut dyn Hook,
) -> Flow<Outcome> {
    begin(run, system, notes).await?;
    let config = LoopConfig {
        tools: TOOLS.to_vec(),
        parallel_calls: false,
        max_empty_replies: 3,
        on_submit: OnSubmit::Once,
    };
    Ok(run_loop(run, &config, hook).await)
}
