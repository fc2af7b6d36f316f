//! Approaches: methods that lead from an issue to a test. One file each, and this list.

mod snippet;
mod swe_agent_plus;
mod testwright;

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, Task};
use testwright_tools::tool::ToolSpec;

use crate::agent::{Outcome, Run};
use crate::model::Message;

/// A method: an agent or a pipeline.
#[async_trait]
pub trait Approach: Send + Sync {
    /// As in `--approach NAME` and in reports.
    fn name(&self) -> &'static str;
    /// One line for people.
    fn description(&self) -> &'static str;
    /// The tools that it offers to its model, in this order.
    fn tools(&self) -> Vec<ToolSpec>;
    /// Works until the run has ended.
    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome;
}

/// What an approach is told besides the run.
#[derive(Debug, Clone)]
pub struct ApproachContext {
    /// Model calls that may be made, for the prompt.
    pub max_steps: u32,
    /// What the user should know of the environment.
    pub notes: Vec<String>,
}

/// Every approach; the first is the default.
pub const ALL: &[&dyn Approach] = &[
    &testwright::Testwright,
    &swe_agent_plus::SweAgentPlus,
    &snippet::Snippet,
];

pub fn find(name: &str) -> Option<&'static dyn Approach> {
    ALL.iter().find(|approach| approach.name() == name).copied()
}

/// Specs of the tools of these names, in this order.
fn offered(names: &[&str]) -> Vec<ToolSpec> {
    let all = testwright_tools::registry::all();
    names
        .iter()
        .filter_map(|name| all.iter().find(|tool| tool.name() == *name))
        .map(|tool| tool.spec())
        .collect()
}

/// How every agent begins: who it is, and the task.
async fn begin(
    run: &mut Run,
    system: &(impl Prompt + Sync),
    notes: &[String],
) -> Result<(), Outcome> {
    let system = crate::agent::prompt(system.render())?;
    let workspace = run.describe().await?;
    let task = crate::agent::prompt(
        Task {
            repository: run.source.name.clone(),
            issue: run.issue.text(),
            workspace,
            notes: notes.to_vec(),
        }
        .render(),
    )?;
    run.say(Message::System { content: system })?;
    run.say(Message::User { content: task })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_that_an_approach_offers_exists() {
        let names = [testwright::TOOLS, swe_agent_plus::TOOLS, snippet::TOOLS];
        for (approach, names) in ALL.iter().zip(names) {
            let found: Vec<String> = approach.tools().into_iter().map(|tool| tool.name).collect();
            assert_eq!(found, names, "{}", approach.name());
        }
    }
}
