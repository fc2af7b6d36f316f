//! Approaches: methods that lead from an issue to a test. Besides its file, an approach needs one line in the list here.

pub mod given;
pub mod model_selection;
mod stages;
mod variant;

use async_trait::async_trait;
use serde::Serialize;
use testwright_agent_prompts::{Prompt, Task};
use testwright_tools::tool::AnyTool;

use crate::agent::{Flow, Outcome, Run};
use given::Given;
use stages::CODE_TOKENS;
use testwright_config::settings::Effort;
use testwright_models::Message;

pub use variant::{ApproachOption, Options, Variant};

/// A method: an agent or a pipeline.
#[async_trait]
pub trait Approach: Send + Sync {
    /// As in `--approach NAME` and in reports.
    fn name(&self) -> &'static str;
    /// One line for people.
    fn description(&self) -> &'static str;
    /// What it works with.
    fn model(&self) -> ModelKind {
        ModelKind::Language
    }
    /// How it works, for people.
    fn workflow(&self) -> Workflow;
    /// The tools that it offers to its model, in this order; a pipeline offers none.
    fn tools(&self) -> Vec<&'static dyn AnyTool> {
        Vec::new()
    }
    /// The parts of it that can be switched.
    fn options(&self) -> &'static [ApproachOption] {
        &[]
    }
    /// What a level of effort switches; `None` where the approach has no levels.
    fn effort(&self, _level: Effort) -> Option<&'static [(ApproachOption, bool)]> {
        None
    }
    /// Samples that a comparison takes of it at least; of more than one, the grader picks, so that the rate is an upper bound.
    fn oracle_samples(&self) -> u32 {
        1
    }
    /// Works until the run has ended.
    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome;
}

/// The kind of model that an approach works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// A language model: the one that the settings name.
    Language,
    /// The model of this name, which follows fixed rules and needs no key. It works for no other approach.
    Rules(&'static str),
}

/// How an approach works.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workflow {
    /// The model decides what comes next.
    Agent {
        /// Names of its own templates; [`LOOP_PROMPTS`](crate::agent::LOOP_PROMPTS) come to them.
        prompts: &'static [&'static str],
    },
    /// The order of the stages is fixed.
    Pipeline {
        stages: &'static [&'static str],
        /// How many there are, in words.
        model_calls: &'static str,
        prompts: &'static [&'static str],
    },
}

/// What an approach is given besides the run.
#[derive(Debug, Clone)]
pub struct ApproachContext {
    /// Model calls that may be made, for the prompt.
    pub max_steps: u32,
    /// What the user should know of the environment.
    pub notes: Vec<String>,
    pub options: Options,
    /// What it is given beyond the issue, as its options ask for.
    pub given: Given,
    /// Tokens that the model can read, where that is known.
    pub context_window: Option<u64>,
}

impl ApproachContext {
    /// Tokens of code that a prompt may hold: as in the papers, or as many as leave room in the model's context.
    fn code_tokens(&self) -> usize {
        let room = self.context_window.map(|window| window / 2);
        let room = room.and_then(|room| usize::try_from(room).ok());
        room.map_or(CODE_TOKENS, |room| room.min(CODE_TOKENS))
    }
}

mod cover;

/// Declares the modules, and a list of the approaches in them in the same order.
macro_rules! approaches {
    ($($module:ident::$approach:ident,)*) => {
        $(mod $module;)*

        /// Every approach; the first is the default.
        pub static ALL: &[&dyn Approach] = &[$(&$module::$approach),*];
    };
}

approaches! {
    testwright::Testwright,
    swe_agent_plus::SweAgentPlus,
    swe_agent::SweAgent,
    zero_shot::ZeroShot,
    zero_shot_plus::ZeroShotPlus,
    zero_shot_file::ZeroShotFile,
    pass_at_k::PassAtK,
    libro::Libro,
    assert_flip::AssertFlip,
    auto_code_rover::AutoCodeRover,
    otter::Otter,
    otter_plus_plus::OtterPlusPlus,
    e_otter_plus_plus::EOtterPlusPlus,
    snippet::Snippet,
}

/// The one for lines; it takes no issue, so it is none of those that are compared.
pub static COVER: &dyn Approach = &cover::Cover;

pub fn find(name: &str) -> Option<&'static dyn Approach> {
    let mut all = ALL.iter().copied().chain([COVER]);
    all.find(|approach| approach.name() == name)
}

/// How every agent begins: who it is, and the task.
async fn begin(run: &mut Run, system: &(impl Prompt + Sync), notes: &[String]) -> Flow {
    begin_with(run, system, notes, None).await
}

/// With advice behind the task, so that what drafts have in common comes first, for the providers' caches.
async fn begin_with(
    run: &mut Run,
    system: &(impl Prompt + Sync),
    notes: &[String],
    advice: Option<String>,
) -> Flow {
    let system = crate::agent::prompt(system.render())?;
    let workspace = run.describe().await?;
    let task = crate::agent::prompt(
        Task {
            repository: run.source.name.clone(),
            issue: run.issue.folded_text_with_hint(),
            workspace,
            notes: notes.to_vec(),
        }
        .render(),
    )?;
    run.say(Message::System { content: system })?;
    let content = match advice {
        Some(advice) => format!("{task}\n\n{advice}"),
        None => task,
    };
    run.say(Message::User { content })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use testwright_tools::tool::{Audience, Route};

    use super::*;
    use testwright_config::settings::Settings;

    #[test]
    fn the_first_approach_is_the_default_of_the_settings() {
        assert_eq!(Settings::default().run.approach, ALL[0].name());
    }

    #[test]
    fn every_agent_offers_tools_for_models_each_once_and_a_way_to_submit() {
        for approach in ALL {
            let tools = approach.tools();
            if let Workflow::Pipeline { .. } = approach.workflow() {
                assert!(tools.is_empty(), "{}", approach.name());
                continue;
            }
            let mut names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", approach.name());
            let for_models = |tool: &&dyn AnyTool| tool.audience() == Audience::Model;
            assert!(tools.iter().all(for_models), "{}", approach.name());
            let submits = |tool: &&dyn AnyTool| tool.route() == Route::Gate;
            assert!(tools.iter().any(submits), "{}", approach.name());
        }
    }

    #[test]
    fn every_prompt_that_an_approach_names_is_there() {
        let known = |name: &&str| {
            testwright_agent_prompts::ALL
                .iter()
                .any(|(known, _)| known == name)
        };
        for approach in ALL {
            let (Workflow::Agent { prompts } | Workflow::Pipeline { prompts, .. }) =
                approach.workflow();
            assert!(
                !prompts.is_empty() && prompts.iter().all(known),
                "{}",
                approach.name()
            );
        }
    }

    #[test]
    fn the_default_approach_chooses_its_tools_by_what_they_declare() {
        let approach = find("testwright").unwrap();
        let names: Vec<&str> = approach.tools().iter().map(|tool| tool.name()).collect();
        assert_eq!(
            names,
            [
                "search",
                "open_file",
                "read_function",
                "run_python",
                "insert_function",
                "edit",
                "run_pytest",
                "try_fix",
                "submit",
            ]
        );
    }
}
