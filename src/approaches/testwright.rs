//! Our own agent, the default: typed tools on the level of functions, the gate's findings as answers of `submit`,
//! candidate fixes tried in forks, and a reviewer who reads the failure against the issue. One draft.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, Task, TestwrightSystem};
use testwright_tools::registry;
use testwright_tools::tool::{AnyTool, Tool};
use testwright_tools::tools::{
    FindFile, OpenFile, Outline, ReadFunction, RunPython, Search, ShowPatch,
};

use super::{Approach, ApproachContext, ApproachOption, Workflow, begin};
use crate::agent::{LoopConfig, NoHook, OnSubmit, Outcome, Run, SubmissionPolicy, run_loop};

/// Offered first, in this order: what the agent looks around with.
static FIRST: &[&dyn AnyTool] = &[
    &Search,
    &FindFile,
    &OpenFile,
    &Outline,
    &ReadFunction,
    &RunPython,
];

const FEEDBACK: ApproachOption = ApproachOption {
    name: "feedback",
    description: "`submit` answers with what the gate finds until it finds nothing",
    default: true,
};
const FIX: ApproachOption = ApproachOption {
    name: "fix",
    description: "asks for a candidate fix before the first submission counts",
    default: true,
};
const REVIEW: ApproachOption = ApproachOption {
    name: "review",
    description: "a reviewer reads the failure against the issue",
    default: true,
};

/// How often the reviewer's doubts go back to the model.
const REVIEWS: u32 = 2;

pub(super) struct Testwright;

#[async_trait]
impl Approach for Testwright {
    fn name(&self) -> &'static str {
        "testwright"
    }

    fn description(&self) -> &'static str {
        "typed tools, gate feedback, candidate fixes on forks, a reviewer"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Agent {
            prompts: &[TestwrightSystem::NAME, Task::NAME],
        }
    }

    fn tools(&self) -> Vec<&'static dyn AnyTool> {
        let is_left_out = |tool: &&dyn AnyTool| tool.low_level() || tool.name() == ShowPatch::NAME;
        let is_first = |tool: &&dyn AnyTool| FIRST.iter().any(|first| first.name() == tool.name());
        let others = registry::for_models().filter(|tool| !is_left_out(tool) && !is_first(tool));
        FIRST.iter().copied().chain(others).collect()
    }

    fn options(&self) -> &'static [ApproachOption] {
        &[FEEDBACK, FIX, REVIEW]
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome {
        let options = &context.options;
        let feedback = options.is_on(&FEEDBACK);
        run.set_submission_policy(SubmissionPolicy {
            feedback,
            wants_fix: options.is_on(&FIX),
            reviews: if options.is_on(&REVIEW) { REVIEWS } else { 0 },
        });
        if let Err(outcome) = begin(
            run,
            &TestwrightSystem {
                max_steps: context.max_steps,
            },
            &context.notes,
        )
        .await
        {
            return outcome;
        }
        let config = LoopConfig {
            tools: self.tools(),
            parallel_calls: true,
            max_empty_replies: 3,
            on_submit: match feedback {
                true => OnSubmit::UntilAccepted,
                false => OnSubmit::Once,
            },
        };
        run_loop(run, &config, &mut NoHook).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// It is sent with every call.
    #[test]
    fn the_fixed_part_is_small() {
        let specs: Vec<_> = Testwright.tools().iter().map(|tool| tool.spec()).collect();
        let schemas = serde_json::to_string(&specs).unwrap().len();
        let system = TestwrightSystem { max_steps: 60 }.render().unwrap().len();
        assert!(schemas + system <= 6_900, "{schemas} + {system}");
    }
}
