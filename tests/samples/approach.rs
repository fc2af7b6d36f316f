//! The approach `sample`: two tools and no feedback.
//!
//! `tests/it/repository/samples.rs` adds this file to a copy of the project as `agent/src/approaches/sample.rs`.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, TestwrightSystem};
use testwright_tools::registry;
use testwright_tools::tool::{AnyTool, Route};

use super::{Approach, ApproachContext, Workflow, begin};
use crate::agent::{Flow, LoopConfig, NoHook, OnSubmit, Outcome, Run, run_loop};

pub(super) struct Sample;

#[async_trait]
impl Approach for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn description(&self) -> &'static str {
        "counts lines and submits"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Agent {
            prompts: &[TestwrightSystem::NAME],
        }
    }

    fn tools(&self) -> Vec<&'static dyn AnyTool> {
        registry::for_models()
            .filter(|tool| tool.name() == "sample" || tool.route() == Route::Gate)
            .collect()
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
        let system = TestwrightSystem {
            max_steps: context.max_steps,
        };
        begin(run, &system, &context.notes).await?;
        let config = LoopConfig {
            tools: self.tools(),
            parallel_calls: false,
            max_empty_replies: 1,
            on_submit: OnSubmit::Once,
        };
        Ok(run_loop(run, &config, &mut NoHook).await)
    }
}
