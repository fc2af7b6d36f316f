//! The approach `sample`: two tools and no feedback.
//!
//! `tests/it/repository/samples.rs` adds this file to a copy of the project as `agent/src/approaches/sample.rs`.

use testwright_agent_prompts::{Prompt, TestwrightSystem};
use testwright_tools::registry;
use testwright_tools::tool::{AnyTool, Route};

use super::{Approach, ApproachContext, Workflow, begin};
use crate::agent::{Flow, LoopConfig, NoHook, OnSubmit, Outcome, Run, run_loop};

pub(super) static APPROACH: Approach = Approach {
    tools,
    ..Approach::new(
        "sample",
        "counts lines and submits",
        Workflow::Agent {
            prompts: &[TestwrightSystem::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

fn tools() -> Vec<&'static dyn AnyTool> {
    registry::for_models()
        .filter(|tool| tool.name() == "sample" || tool.route() == Route::Gate)
        .collect()
}

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let system = TestwrightSystem {
        max_steps: context.max_steps,
    };
    begin(run, &system, &context.notes).await?;
    let config = LoopConfig {
        tools: tools(),
        parallel_calls: false,
        max_empty_replies: 1,
        on_submit: OnSubmit::Once,
    };
    Ok(run_loop(run, &config, &mut NoHook).await)
}
