//! Our own agent, the default: typed tools on the level of functions, the gate's findings as answers of `submit`,
//! candidate fixes tried in forks, and a reviewer who reads the failure against the issue. One draft.

use async_trait::async_trait;
use testwright_agent_prompts::TestwrightSystem;
use testwright_tools::tool::ToolSpec;

use super::{Approach, ApproachContext, begin, offered};
use crate::agent::{LoopConfig, NoHook, OnSubmit, Outcome, Run, SubmissionPolicy, run_loop};

pub(super) const TOOLS: &[&str] = &[
    "search",
    "find_file",
    "open_file",
    "outline",
    "read_function",
    "run_python",
    "insert_function",
    "rewrite_function",
    "revert",
    "run_pytest",
    "try_fix",
    "show_patch",
    "submit",
];

pub(super) struct Testwright;

#[async_trait]
impl Approach for Testwright {
    fn name(&self) -> &'static str {
        "testwright"
    }

    fn description(&self) -> &'static str {
        "typed tools, gate feedback, candidate fixes on forks, a reviewer"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        offered(TOOLS)
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome {
        run.set_submission_policy(SubmissionPolicy {
            feedback: true,
            wants_fix: true,
            reviews: 2,
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
            on_submit: OnSubmit::UntilAccepted,
        };
        run_loop(run, &config, &mut NoHook).await
    }
}
