//! Checks a test that the user gives: the agent tries fixes of the issue on it, and a reviewer compares its failure
//! with the issue. It cannot change the test.

use testwright_agent_prompts::{CheckSystem, CheckTest, Prompt, Review, Task};
use testwright_tools::tool::AnyTool;
use testwright_tools::tools::{
    OpenFile, ReadFunction, RunPytest, RunPython, Search, Submit, TryFix,
};
use testwright_tools::visible;

use super::{Approach, ApproachContext, Workflow, begin_with, run_with_tools};
use crate::agent::{Flow, OnSubmit, Outcome, Run, SubmissionPolicy};

/// Tools in the order in which they are offered.
static TOOLS: &[&dyn AnyTool] = &[
    &Search,
    &OpenFile,
    &ReadFunction,
    &RunPython,
    &RunPytest,
    &TryFix,
    &Submit,
];

pub(super) static APPROACH: Approach = Approach {
    tools: || TOOLS.to_vec(),
    ..Approach::new(
        "check",
        "tries fixes and a reviewer on a given test (`testwright check --model`)",
        Workflow::Agent {
            prompts: &[CheckSystem::NAME, Task::NAME, CheckTest::NAME, Review::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    run.set_submission_policy(SubmissionPolicy {
        feedback: true,
        // A test that fails by a mistake of its own needs no fix.
        wants_fix: false,
        reviews: Some(0),
    });
    begin(run, context).await?;
    Ok(run_with_tools(run, TOOLS.to_vec(), OnSubmit::UntilAccepted).await)
}

/// Puts the test into the workspace, runs it, and starts the conversation.
async fn begin(run: &mut Run, context: &ApproachContext) -> Flow {
    let patch = context.extra_inputs.test_patch.clone().unwrap_or_default();
    run.write_patch(&patch).await?;
    let result = run.run_changed_tests().await?.text;
    // The model did not make this call.
    run.forget_conversation();
    let system = CheckSystem {
        max_steps: context.max_steps,
    };
    let test = CheckTest {
        test: visible(&patch).into_owned(),
        result: visible(&result).into_owned(),
    };
    let test = test.render()?;
    begin_with(run, &system, &context.notes, Some(test)).await
}
