//! The `testwright` agent, the default approach: typed tools that work on functions, the gate's findings as
//! answers of `submit`, candidate fixes tried in forks, and a reviewer who compares the failure with the
//! issue. It writes one draft, or several from different views; then the draft is chosen on which drafts and
//! candidate fixes agree most.

use testwright_agent_prompts::{
    CodeFirst, PassingFirst, Prompt, Review, ReviewDoubt, Task, TestwrightSystem, TryAFix,
};
use testwright_tools::registry;
use testwright_tools::tool::{AnyTool, Tool};
use testwright_tools::tools::{
    CreateFile, FindFile, OpenFile, Outline, ReadFunction, Revert, RewriteFunction, RunPython,
    Search, ShowPatch,
};

use super::{
    Approach, ApproachContext, ApproachOption, Switches, Workflow, begin_with, run_with_tools,
};
use crate::agent::{Drafts, Flow, OnSubmit, Outcome, Run, SubmissionPolicy};
use crate::retrieval::{Index, functions};
use testwright_config::settings::Effort;

/// Tools to explore the code, offered first in this order.
static FIRST: &[&dyn AnyTool] = &[&Search, &OpenFile, &ReadFunction, &RunPython];

/// Omitted tools: others do the same, and schemas are sent with every call.
pub(super) const REDUNDANT_TOOLS: [&str; 6] = [
    FindFile::NAME,
    Outline::NAME,
    CreateFile::NAME,
    RewriteFunction::NAME,
    Revert::NAME,
    ShowPatch::NAME,
];

const FEEDBACK: ApproachOption = ApproachOption::on_by_default(
    "feedback",
    "`submit` returns the gate's findings until it accepts",
);
const FIX: ApproachOption = ApproachOption::on_by_default(
    "fix",
    "asks for a candidate fix before the first submission counts",
);
const REVIEW: ApproachOption =
    ApproachOption::on_by_default("review", "a reviewer compares the failure with the issue");

const DRAFTS: ApproachOption = ApproachOption::off_by_default(
    "drafts",
    "writes three tests from different views, and chooses by the tests × fixes matrix",
);
const PASSING_FIRST: ApproachOption = ApproachOption::off_by_default(
    "passing-first",
    "asks for a passing test that pins the wrong behaviour, then inverts it",
);

/// Maximum number of functions listed for a draft that starts from the code.
const FUNCTIONS: usize = 8;
/// Minimum number of steps for a draft.
const MIN_STEPS_PER_DRAFT: u32 = 8;
/// Maximum number of times the reviewer's doubts are sent back to the model.
const MAX_REVIEWS: u32 = 2;

pub(super) static APPROACH: Approach = Approach {
    tools,
    options: &[FEEDBACK, FIX, REVIEW, DRAFTS, PASSING_FIRST],
    effort,
    ..Approach::new(
        "testwright",
        "an agent with typed tools, feedback from the acceptance checks (the gate), candidate fixes tried on copies of the sandbox, and a reviewer",
        Workflow::Agent {
            prompts: &[
                TestwrightSystem::NAME,
                Task::NAME,
                PassingFirst::NAME,
                CodeFirst::NAME,
                TryAFix::NAME,
                Review::NAME,
                ReviewDoubt::NAME,
            ],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

fn tools() -> Vec<&'static dyn AnyTool> {
    let is_excluded =
        |tool: &&dyn AnyTool| tool.low_level() || REDUNDANT_TOOLS.contains(&tool.name());
    let is_first = |tool: &&dyn AnyTool| FIRST.iter().any(|first| first.name() == tool.name());
    let others = registry::for_models().filter(|tool| !is_excluded(tool) && !is_first(tool));
    FIRST.iter().copied().chain(others).collect()
}

fn effort(level: Effort) -> Option<Switches> {
    Some(match level {
        Effort::Low => &[(FIX, false), (REVIEW, false)],
        Effort::Medium => &[],
        Effort::High => &[(DRAFTS, true)],
    })
}

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let options = &context.options;
    run.set_submission_policy(SubmissionPolicy {
        feedback: options.is_on(&FEEDBACK),
        wants_fix: options.is_on(&FIX),
        reviews: options.is_on(&REVIEW).then_some(MAX_REVIEWS),
    });
    let views: &[View] = match (options.is_on(&DRAFTS), options.is_on(&PASSING_FIRST)) {
        (true, _) => &[View::Issue, View::PassingTest, View::Code],
        (false, true) => &[View::PassingTest],
        (false, false) => &[View::Issue],
    };
    let views = &views[..views.len().min(most_drafts(context.max_steps))];
    match views {
        [view] => write(run, context, *view).await,
        views => write_and_choose(run, context, views).await,
    }
}

/// The starting point of a draft.
#[derive(Debug, Clone, Copy)]
enum View {
    /// The issue, with the agent's default instructions.
    Issue,
    /// A passing test that pins the wrong behaviour.
    PassingTest,
    /// The faulty code and its fix.
    Code,
}

impl View {
    fn advice(self, run: &mut Run) -> Flow<Option<String>> {
        match self {
            View::Issue => Ok(None),
            View::PassingTest => Ok(Some(PassingFirst {}.render()?)),
            View::Code => {
                let index = Index::from_tree(&run.tree()?)?;
                let functions = functions(&index, &run.issue.folded_text(), FUNCTIONS);
                Ok(Some(CodeFirst { functions }.render()?))
            }
        }
    }
}

/// Writes one draft.
async fn write(run: &mut Run, context: &ApproachContext, view: View) -> Flow<Outcome> {
    let system = TestwrightSystem {
        max_steps: context.max_steps,
    };
    let advice = view.advice(run)?;
    begin_with(run, &system, &context.notes, advice).await?;
    let on_submit = match context.options.is_on(&FEEDBACK) {
        true => OnSubmit::UntilAccepted,
        false => OnSubmit::Once,
    };
    Ok(run_with_tools(run, tools(), on_submit).await)
}

async fn write_and_choose(
    run: &mut Run,
    context: &ApproachContext,
    views: &[View],
) -> Flow<Outcome> {
    let planned = u32::try_from(views.len()).unwrap_or(u32::MAX);
    let mut drafts = Drafts::new(run, planned);
    // The system message is the same for all drafts, so that the provider can cache it.
    let context = &ApproachContext {
        max_steps: context.max_steps.div_ceil(planned),
        ..context.clone()
    };
    for view in views {
        drafts.begin(run).await?;
        let outcome = write(run, context, *view).await?;
        drafts.end(run, outcome).await?;
        if drafts.agree(run).await? {
            break;
        }
    }
    drafts.choose(run).await
}

/// Returns the maximum number of drafts for these steps, at least one.
fn most_drafts(max_steps: u32) -> usize {
    usize::try_from(max_steps / MIN_STEPS_PER_DRAFT).map_or(usize::MAX, |most| most.max(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn few_steps_allow_few_drafts() {
        assert_eq!([0, 15, 16, 60].map(most_drafts), [1, 1, 2, 7]);
    }

    /// The fixed part is sent with every call.
    #[test]
    fn fixed_prompt_is_small() {
        let specs: Vec<_> = tools().iter().map(|tool| tool.spec()).collect();
        let schemas = serde_json::to_string(&specs).unwrap().len();
        let system = TestwrightSystem { max_steps: 60 }.render().unwrap().len();
        assert!(schemas + system <= 4_900, "{schemas} + {system}");
    }
}
