//! Writes a test that runs given lines: the `testwright` agent with another goal. It sees which lines its
//! tests still miss, and which condition each depends on. The gate accepts a test that passes, asserts
//! something and runs all lines.

use testwright_agent_prompts::{CoverSystem, CoverTask, Prompt};
use testwright_tools::registry;
use testwright_tools::tool::{AnyTool, Tool};
use testwright_tools::tools::TryFix;

use super::extra_inputs::lines::{self, Stub};
use super::testwright::REDUNDANT_TOOLS;
use super::{Approach, ApproachContext, Workflow, run_with_tools};
use crate::agent::{Flow, OnSubmit, Outcome, Run};
use testwright_models::Message;

pub(super) static APPROACH: Approach = Approach {
    tools,
    ..Approach::new(
        "cover",
        "writes a test that runs given lines (`testwright cover`)",
        Workflow::Agent {
            prompts: &[CoverSystem::NAME, CoverTask::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

fn tools() -> Vec<&'static dyn AnyTool> {
    let is_excluded = |tool: &&dyn AnyTool| {
        tool.low_level() || tool.name() == TryFix::NAME || REDUNDANT_TOOLS.contains(&tool.name())
    };
    let tools = registry::with_wanted_lines();
    tools.filter(|tool| !is_excluded(tool)).collect()
}

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    begin(run, context).await?;
    Ok(run_with_tools(run, tools(), OnSubmit::UntilAccepted).await)
}

async fn begin(run: &mut Run, context: &ApproachContext) -> Flow {
    let tree = run.tree()?;
    let ranges = lines::resolve(&tree, &context.extra_inputs.lines)?;
    let blocks = lines::numbered(&tree, &ranges)?;
    let test = context.extra_inputs.test.clone().unwrap_or_default();
    let stub = match test.is_empty() {
        true => Stub::default(),
        false => lines::stub(&tree, &test)?,
    };
    let system = CoverSystem {
        max_steps: context.max_steps,
        is_given_test: !test.is_empty(),
    };
    let task = CoverTask {
        repository: run.source.name.clone(),
        blocks,
        test,
        imports: stub.imports,
        stub: stub.source,
        max_tokens: run.budget.limits.tokens,
        workspace: run.describe().await?,
        notes: context.notes.clone(),
    };
    let content = system.render()?;
    run.say(Message::System { content })?;
    run.remark(task.render()?)
}
