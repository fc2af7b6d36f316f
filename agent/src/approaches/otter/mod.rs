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
    let config = OtterConfig::from_options(&context.options);
    match drafts(run, &[config]).await?.first() {
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
static OPTIONS: &[ApproachOption] = &[
    PLANNER,
    REFINEMENT,
    VALIDATION,
    FOCAL,
    TESTS,
    IMPORTS,
    IMPORT_REPAIR,
];

/// The generator's inputs, and the optional stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OtterConfig {
    pub planner: bool,
    /// Whether the planner reflects on its plan.
    pub refinement: bool,
    /// Whether the planner learns which of its actions are impossible.
    pub validation: bool,
    pub focal: bool,
    pub tests: bool,
    /// Whether the generator sees the imports and the structure of the test file.
    pub imports: bool,
    pub import_repair: bool,
}

impl OtterConfig {
    fn from_options(options: &Options) -> Self {
        OtterConfig {
            planner: options.is_on(&PLANNER),
            refinement: options.is_on(&REFINEMENT),
            validation: options.is_on(&VALIDATION),
            focal: options.is_on(&FOCAL),
            tests: options.is_on(&TESTS),
            imports: options.is_on(&IMPORTS),
            import_repair: options.is_on(&IMPORT_REPAIR),
        }
    }
}

impl Default for OtterConfig {
    fn default() -> Self {
        OtterConfig::from_options(&Options::default())
    }
}

/// Writes a draft for each configuration that leads to one. Localization runs once for all of them.
pub(super) async fn drafts(run: &mut Run, configs: &[OtterConfig]) -> Flow<Vec<Draft>> {
    let repository = Repository::from_run(run)?;
    let combined_config = OtterConfig {
        tests: configs.iter().any(|config| config.tests),
        focal: configs.iter().any(|config| config.focal),
        ..OtterConfig::default()
    };
    let localized = localize::localize(run, &repository, combined_config).await?;
    let mut drafts = Vec::new();
    for config in configs {
        drafts.extend(draft(run, &repository, &localized, *config).await?);
    }
    Ok(drafts)
}

/// Writes a test from the localized code.
async fn draft(
    run: &mut Run,
    repository: &Repository,
    localized: &Localized,
    config: OtterConfig,
) -> Flow<Option<Draft>> {
    let plan = match config.planner {
        true => plan::plan(run, repository, localized, config).await?,
        false => Plan::from_localized(localized, config),
    };
    let target = plan.target;
    let target = target.unwrap_or_else(|| Action::new_test(localized, repository));
    generate::generate(run, repository, &plan.reads, &target, config).await
}
