//! Otter (Otter §4.1): localizes tests and focal code, plans what to read and where to write, writes one
//! complete function, and repairs its imports. Each call has a context of its own; decoding is greedy.

mod generate;
mod imports;
mod localize;
mod plan;
mod repository;

use testwright_agent_prompts::{
    OtterFiles, OtterFunctions, OtterGenerate, OtterPlan, OtterReflect, Prompt,
};

use super::stages::Draft;
use super::{Approach, ApproachContext, ApproachOption, Options, Workflow};
use crate::agent::{Flow, Outcome, Run};

use localize::Localized;
use plan::{Action, Plan};
use repository::Repository;

const STAGES: &[&str] = &["localize", "plan", "write", "repair"];
pub(super) const PROMPTS: &[&str] = &[
    OtterFiles::NAME,
    OtterFunctions::NAME,
    OtterPlan::NAME,
    OtterReflect::NAME,
    OtterGenerate::NAME,
];

pub(super) static APPROACH: Approach = Approach {
    options: OPTIONS,
    ..Approach::new(
        "otter",
        "locates files and functions, writes and revises a plan, generates the test, repairs imports",
        Workflow::Pipeline {
            stages: STAGES,
            model_calls: "7 to 11",
            prompts: PROMPTS,
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let options = std::slice::from_ref(&context.options);
    match drafts(run, options).await?.first() {
        Some(draft) => draft.hand_in(run).await,
        None => Ok(Outcome::nothing(
            "the model wrote no test that can be put into the repository",
        )),
    }
}

const PLANNER: ApproachOption =
    ApproachOption::on_by_default("planner", "plans what to read and where to write");
const REFINEMENT: ApproachOption =
    ApproachOption::on_by_default("refinement", "the planner reflects on its plan");
const VALIDATION: ApproachOption = ApproachOption::on_by_default(
    "validation",
    "the planner learns which of its actions are impossible",
);
const FOCAL: ApproachOption = ApproachOption::on_by_default("focal", "localizes the faulty code");
const TESTS: ApproachOption = ApproachOption::on_by_default("tests", "localizes tests");
const IMPORTS: ApproachOption = ApproachOption::on_by_default(
    "imports",
    "the generator sees the imports and the structure of the test file",
);
const IMPORT_REPAIR: ApproachOption =
    ApproachOption::on_by_default("import-repair", "looks up missing and wrong imports");

/// Options for the paper's ablations (Otter §6.3).
const OPTIONS: &[ApproachOption] = &[
    PLANNER,
    REFINEMENT,
    VALIDATION,
    FOCAL,
    TESTS,
    IMPORTS,
    IMPORT_REPAIR,
];

/// Returns the options of a draft without a plan, which sees these parts of the localized code.
pub(super) fn view(tests: bool, focal: bool) -> Options {
    let options = Options::default().with(&PLANNER, false);
    options.with(&TESTS, tests).with(&FOCAL, focal)
}

/// Writes a draft for each of these options that lead to one. Localization runs once for all of them.
pub(super) async fn drafts(run: &mut Run, all: &[Options]) -> Flow<Vec<Draft>> {
    let repository = Repository::from_run(run)?;
    let is_used = |part: &ApproachOption| all.iter().any(|options| options.is_on(part));
    let (tests, focal) = (is_used(&TESTS), is_used(&FOCAL));
    let localized = localize::localize(run, &repository, tests, focal).await?;
    let mut drafts = Vec::new();
    for options in all {
        drafts.extend(draft(run, &repository, &localized, options).await?);
    }
    Ok(drafts)
}

/// Writes a test from the localized code.
async fn draft(
    run: &mut Run,
    repository: &Repository,
    localized: &Localized,
    options: &Options,
) -> Flow<Option<Draft>> {
    let plan = match options.is_on(&PLANNER) {
        true => plan::plan(run, repository, localized, options).await?,
        false => Plan::from_localized(localized, options),
    };
    let target = plan.target;
    let target = target.unwrap_or_else(|| Action::new_test(localized, repository));
    generate::generate(run, repository, &plan.reads, &target, options).await
}
