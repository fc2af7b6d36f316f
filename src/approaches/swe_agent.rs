//! SWE-Agent (SWT-bench §4.1): one command at a time with a shell, a windowed viewer and a line editor. Nobody orders it
//! to run its tests; its submission is judged by the gate for the record.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, SweAgentSystem, Task};
use testwright_tools::tool::AnyTool;

use super::swe_agent_plus::TOOLS;
use super::{Approach, ApproachContext, Workflow, begin};
use crate::agent::{LoopConfig, NoHook, OnSubmit, Outcome, Run, run_loop};

pub(super) struct SweAgent;

#[async_trait]
impl Approach for SweAgent {
    fn name(&self) -> &'static str {
        "swe-agent"
    }

    fn description(&self) -> &'static str {
        "shell, viewer and line editor, one command at a time"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Agent {
            prompts: &[SweAgentSystem::NAME, Task::NAME],
        }
    }

    fn tools(&self) -> Vec<&'static dyn AnyTool> {
        TOOLS.to_vec()
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome {
        let system = SweAgentSystem {
            max_steps: context.max_steps,
        };
        if let Err(outcome) = begin(run, &system, &context.notes).await {
            return outcome;
        }
        let config = LoopConfig {
            tools: self.tools(),
            parallel_calls: false,
            max_empty_replies: 3,
            on_submit: OnSubmit::Once,
        };
        run_loop(run, &config, &mut NoHook).await
    }
}
