//! Approaches: methods to write a test for an issue. Besides its file, an approach needs one line in the list
//! here.

pub mod extra_inputs;
pub mod model_selection;
mod stages;
mod variant;

use futures::future::BoxFuture;
use serde::Serialize;
use testwright_agent_prompts::{Prompt, Task};
use testwright_tools::tool::AnyTool;
use testwright_tools::visible;

use crate::agent::{Flow, LoopConfig, NoHook, OnSubmit, Outcome, Run, run_loop};
use extra_inputs::ExtraInputs;
use stages::CODE_TOKENS;
use testwright_config::settings::Effort;
use testwright_models::Message;

pub use command::command_line::{CommandLine, report_name, split_list};
pub use variant::{ApproachOption, Options, Variant};

/// An approach: an agent or a pipeline.
pub struct Approach {
    /// Name, as in `--approach NAME` and in reports.
    pub name: &'static str,
    /// Description of one line.
    pub description: &'static str,
    /// Kind of model that it works with.
    pub model: ModelKind,
    /// Workflow, as shown to people.
    pub workflow: Workflow,
    /// Returns the tools that it offers to its model, in this order; a pipeline offers none.
    pub tools: fn() -> Vec<&'static dyn AnyTool>,
    /// Parts of it that can be switched.
    pub options: &'static [ApproachOption],
    /// Returns the switches of an effort level; `None` if the approach has no levels.
    pub effort: fn(Effort) -> Option<Switches>,
    /// Minimum number of samples that a comparison takes of it. The grader picks the best of several samples, so
    /// the rate is an upper bound.
    pub oracle_samples: u32,
    /// Runs until the run has ended. Returns the outcome as an error if it ended early.
    pub run: RunApproach,
}

/// Options with the values that an effort level gives them.
pub type Switches = &'static [(ApproachOption, bool)];

/// The function that carries out a run.
pub type RunApproach = for<'a> fn(&'a mut Run, &'a ApproachContext) -> BoxFuture<'a, Flow<Outcome>>;

impl Approach {
    /// Returns an approach for a language model, without tools, options, effort levels or further samples.
    const fn new(
        name: &'static str,
        description: &'static str,
        workflow: Workflow,
        run: RunApproach,
    ) -> Self {
        Approach {
            name,
            description,
            model: ModelKind::Language,
            workflow,
            tools: Vec::new,
            options: &[],
            effort: |_| None,
            oracle_samples: 1,
            run,
        }
    }
}

/// The kind of model that an approach works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// The language model from the settings.
    Language,
    /// A rule-based model with this name, which needs no API key and works with no other approach.
    Rules(&'static str),
}

/// The workflow of an approach.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workflow {
    /// The model decides on each next step.
    Agent {
        /// Names of its own templates, in addition to [`LOOP_PROMPTS`](crate::agent::LOOP_PROMPTS).
        prompts: &'static [&'static str],
    },
    /// The order of the stages is fixed.
    Pipeline {
        /// Names of the stages, in their order.
        stages: &'static [&'static str],
        /// Number of model calls, in words.
        model_calls: &'static str,
        /// Names of its templates.
        prompts: &'static [&'static str],
    },
}

/// The inputs of an approach besides the run.
#[derive(Debug, Clone)]
pub struct ApproachContext {
    /// Maximum model calls, for the prompt.
    pub max_steps: u32,
    /// Notes about the environment for the user.
    pub notes: Vec<String>,
    /// Options of the approach.
    pub options: Options,
    /// Extra inputs beyond the issue, as its options require.
    pub extra_inputs: ExtraInputs,
    /// Context window of the model in tokens, if known.
    pub context_window: Option<u64>,
    /// Program of the user, for the approach that runs one.
    pub command: Option<CommandLine>,
    /// Environment variable with the key of the model, which that program must not see.
    pub key_variable: String,
}

impl ApproachContext {
    /// Returns the maximum tokens of code in a prompt: as in the papers, or less if the model's context is
    /// smaller.
    fn code_tokens(&self) -> usize {
        let room = self.context_window.map(|window| window / 2);
        let room = room.and_then(|room| usize::try_from(room).ok());
        room.map_or(CODE_TOKENS, |room| room.min(CODE_TOKENS))
    }
}

mod check;
mod command;
mod cover;

/// Declares the modules, and a list of the approaches in them in the same order.
macro_rules! approaches {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// Every approach; the first is the default.
        pub static ALL: &[&Approach] = &[$(&$module::APPROACH),*];
    };
}

approaches! {
    testwright,
    swe_agent_plus,
    swe_agent,
    zero_shot,
    zero_shot_plus,
    zero_shot_file,
    pass_at_k,
    libro,
    assert_flip,
    auto_code_rover,
    otter,
    otter_plus_plus,
    e_otter_plus_plus,
    snippet,
}

/// The approach for coverage of given lines. It takes no issue, so it is not in comparisons.
pub static COVER: &Approach = &cover::APPROACH;

/// The approach that tries fixes on a given test. It writes no test, so it is not in comparisons.
pub static CHECK: &Approach = &check::APPROACH;

/// The approach that runs a program of the user. It has no name of its own: see [`CommandLine`].
static COMMAND: &Approach = &command::APPROACH;

/// Returns the approach of this name, without options; `None` if the name is unknown.
pub fn find(name: &str) -> Option<&'static Approach> {
    let mut all = ALL.iter().copied().chain([COVER, CHECK]);
    all.find(|approach| approach.name == name)
}

/// Starts the conversation of every agent: the system message and the task.
async fn begin(run: &mut Run, system: &(impl Prompt + Sync), notes: &[String]) -> Flow {
    begin_with(run, system, notes, None).await
}

/// Starts the conversation, with advice after the task. The common part of several drafts comes first, so
/// that the provider can cache it.
async fn begin_with(
    run: &mut Run,
    system: &(impl Prompt + Sync),
    notes: &[String],
    advice: Option<String>,
) -> Flow {
    let system = system.render()?;
    let workspace = run.describe().await?;
    let task = Task {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text_with_hint(),
        workspace,
        notes: notes.to_vec(),
    }
    .render()?;
    if let Some(patch) = run.issue.wish.earlier_test.clone() {
        run.write_patch(&patch).await?;
    }
    let earlier_test = run.issue.wish.earlier_test_text();
    let earlier_test = earlier_test.map(|text| visible(&text).into_owned());
    run.say(Message::System { content: system })?;
    let parts = [Some(task), advice, earlier_test].into_iter().flatten();
    run.remark(parts.collect::<Vec<String>>().join("\n\n"))
}

/// Lets the model use the tools until a submission ends the run.
async fn run_with_tools(
    run: &mut Run,
    tools: Vec<&'static dyn AnyTool>,
    on_submit: OnSubmit,
) -> Outcome {
    let config = LoopConfig {
        tools,
        parallel_calls: true,
        max_empty_replies: 3,
        on_submit,
    };
    run_loop(run, &config, &mut NoHook).await
}

#[cfg(test)]
mod tests;
