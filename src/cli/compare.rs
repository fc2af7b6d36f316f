//! `testwright compare`: runs, grades and reports every combination of approach, model, instance and sample.

mod given_systems;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testwright_evals::folder::Versioned;
use testwright_evals::predictions::Predictions;

use super::eval::GradeArgs;
use super::headings::{DATA, LIMITS, MODEL, OUTPUT, SERVER};
use super::output::{self, ProgressLine, escape_line};
use super::output_folder;
use super::repository_args::load_settings;
use super::repository_args::names::approaches;
use progress::show_step;
use testwright_agent::approaches::split_list;
use testwright_comparisons::compare::report::{self, ComparisonReport};
use testwright_comparisons::compare::{
    Estimate, GRADING, Inputs, Plan, PlanRequest, REMOTE_RUNS, Schedule, StepListener, Summary,
    prediction_sets, write_predictions,
};
use testwright_comparisons::grading::{GradingRun, RemoteGrading};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Effort, Settings};
use testwright_models::ModelName;
use testwright_server::batch::Batch;
use testwright_server::comparison::{CellSettings, ModelSettings, StoreRuns};
use testwright_server::grading::remote::StoreGradings;
use testwright_server::reserved_owners;

#[derive(Debug, clap::Args)]
#[command(after_help = format!(
    "Approaches:\n{}\n\nExamples:\n  \
     testwright compare --dataset swt-bench-lite.parquet --approaches libro,testwright \\\n      \
     --models gpt-5-mini --max-dollars 5 --out compared\n  \
     testwright compare --dataset swt-bench-lite.parquet --replay compared --out replayed",
    approaches().to_table()
))]
pub(super) struct Args {
    #[command(flatten)]
    grade: GradeArgs,
    /// Approaches, separated by commas, with their options: otter,otter:planner=off. Your own
    /// program is "command:python my_agent.py"; its commas must be in quotes. May be repeated
    #[arg(short, long, help_heading = MODEL, value_name = "NAMES", required_unless_present = "replay")]
    approaches: Vec<String>,
    /// Code patches in the format of predictions; approaches with other-patch=on use them instead
    /// of the golden patches
    #[arg(long, help_heading = DATA, value_name = "PREDICTIONS", conflicts_with = "replay")]
    code_patches: Option<PathBuf>,
    /// Predictions of another system, to grade and report beside the approaches, without runs and
    /// costs; may be repeated
    #[arg(long, help_heading = DATA, value_name = "NAME=FILE", conflicts_with = "replay")]
    predictions: Vec<String>,
    /// Models, separated by commas [default: the model of the settings]
    #[arg(short, long, help_heading = MODEL, value_name = "NAMES", value_delimiter = ',')]
    models: Vec<String>,
    /// Number of runs for each approach, model and instance
    #[arg(long, help_heading = MODEL, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// Maximum cost of the whole comparison in US dollars, including failed calls [default: no
    /// limit]
    #[arg(long, help_heading = LIMITS, value_name = "X")]
    max_dollars: Option<f64>,
    /// Maximum number of steps for each run: model calls without reviews [default: 60]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    max_steps: Option<u64>,
    /// Maximum number of tokens for each run, prompts and completions together [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    max_tokens: Option<u64>,
    /// Maximum minutes for each run, not counting the environment build [default: 30]
    #[arg(long, help_heading = LIMITS, value_name = "M")]
    max_minutes: Option<f64>,
    /// Effort of the approaches; each level sets some of their options
    #[arg(long, help_heading = MODEL, value_name = "LEVEL", value_enum)]
    effort: Option<Effort>,
    /// Minimum confidence (0 to 1); tests below it are withheld [default: no minimum]
    #[arg(long, help_heading = LIMITS, value_name = "X")]
    min_confidence: Option<f64>,
    /// Folder with custom prompts: NAME.md replaces the prompt of that name
    #[arg(long, help_heading = MODEL, value_name = "DIR")]
    prompts: Option<PathBuf>,
    /// Print how many runs are left, how many environments they need and what they may cost, and
    /// do nothing
    #[arg(long, help_heading = OUTPUT, conflicts_with = "replay")]
    dry_run: bool,
    /// Grade and report the existing runs without starting new ones
    #[arg(long, help_heading = OUTPUT)]
    no_runs: bool,
    /// Replay the comparison in this folder from its recorded replies, with the same approaches,
    /// models and samples
    #[arg(long, help_heading = OUTPUT, value_name = "DIR", conflicts_with_all = ["approaches", "models", "samples", "max_dollars", "effort"])]
    replay: Option<PathBuf>,
    /// Database of a server whose workers (`testwright serve`, `testwright worker`) execute and
    /// grade the runs [default: work on this machine]
    #[arg(long, help_heading = SERVER, value_name = "URL", conflicts_with_all = ["replay", "prompts"])]
    database: Option<String>,
}

/// Concurrent runs for each worker. Several fit, because most of them wait for a model.
const RUNS_PER_WORKER: usize = 4;
/// Expected memory of a waiting run, in bytes.
const MEMORY_PER_RUN: u64 = 1 << 30;

pub(super) async fn run(args: &Args) -> Result<u8> {
    let Some(out) = &args.grade.out else {
        return Err(Error::usage("compare").cause("--out is required"));
    };
    output_folder::check_has_no_results(out)?;
    let recorded = match &args.replay {
        Some(folder) => Some(Plan::read(folder)?.ok_or_else(|| {
            Error::usage(format!("replay {}", folder.display()))
                .cause("it has no comparison.json")
                .hint("pass a folder that `testwright compare --out` wrote")
        })?),
        None => None,
    };
    let settings = settings(args, recorded.as_ref())?;
    let mut grading = args.grade.grading_run(settings)?;
    grading.out = out.join(GRADING);
    let (mut plan, inputs) = match recorded {
        Some(recorded) => (replayed_plan(recorded, &grading), Inputs::new()),
        None => new_plan(args, &mut grading)?,
    };
    let given = match &args.replay {
        Some(folder) => given_systems::recorded(folder, &plan, &grading)?,
        None => given_systems::add(&args.predictions, &grading, &mut plan)?,
    };
    if args.dry_run {
        return print_estimate(args, &plan, &grading, out);
    }
    plan.write(out)?;
    let remote = remote_runs(args, &plan, &grading.settings, out).await?;
    let summary = match args.no_runs {
        true => Summary::of_folder(out, &plan)?,
        false => make_runs(args, &plan, &inputs, &grading, remote.as_ref()).await?,
    };
    let mut sets = prediction_sets(&plan, &summary.runs);
    for given in given {
        if let Some(set) = sets.iter_mut().find(|set| set.model == given.model) {
            *set = given;
        }
    }
    write_predictions(out, &sets)?;
    if summary.interrupted {
        return Err(Error::interrupted());
    }
    let gradings = remote
        .as_ref()
        .map(|remote| StoreGradings::new(remote.batch.clone(), &grading));
    let gradings: Option<&dyn RemoteGrading> = gradings.as_ref().map(|remote| remote as _);
    args.grade
        .grade(&grading, &sets, Vec::new(), gradings)
        .await?;
    let report = report::write(out)?;
    if let Some(remote) = &remote {
        remote.put_report(out).await?;
    }
    print(args, &report, &summary)
}

fn settings(args: &Args, recorded: Option<&Plan>) -> Result<Settings> {
    let limits = recorded.map(|plan| &plan.limits);
    let settings = load_settings(&args.grade.sandbox.sources(|flags| {
        let steps = args.max_steps.or(limits.map(|limits| limits.steps));
        flags.set("run.max-steps", steps);
        let tokens = args.max_tokens.or(limits.and_then(|limits| limits.tokens));
        flags.set("run.max-tokens", tokens);
        let minutes = args.max_minutes.or(limits.map(|limits| limits.minutes));
        flags.set("run.max-minutes", minutes);
        let least = limits.and_then(|limits| limits.min_confidence);
        flags.set("run.min-confidence", args.min_confidence.or(least));
        flags.set("run.prompts", args.prompts.clone());
        flags.set("run.effort", args.effort);
    }))?;
    Ok(settings)
}

/// Returns the recorded plan with the instances of the current dataset and their recorded extra inputs.
fn replayed_plan(recorded: Plan, grading: &GradingRun) -> Plan {
    let today = Plan::new(&grading.dataset, Vec::new(), 1, &grading.settings);
    let recorded_inputs = |id: &str| {
        recorded
            .instances
            .iter()
            .find(|i| i.id == id)?
            .extra_inputs
            .clone()
    };
    Plan {
        instances: today.with_given(recorded_inputs).instances,
        ..recorded
    }
}

/// Reads the patches of `--code-patches`. They must come from one model, so that each instance has one patch.
fn code_patches(args: &Args, grading: &GradingRun) -> Result<Option<Predictions>> {
    let Some(path) = &args.code_patches else {
        return Ok(None);
    };
    given_systems::of_one_model(path, grading).map(Some)
}

fn new_plan(args: &Args, grading: &mut GradingRun) -> Result<(Plan, Inputs)> {
    let approaches = args.approaches.iter().flat_map(|list| split_list(list));
    // Users may put a space after each comma.
    let models = args.models.iter().map(|name| ModelName::parse(name.trim()));
    let request = PlanRequest {
        approaches: approaches.collect(),
        models: models.collect::<Result<_>>()?,
        samples: args.samples,
        max_dollars: args.max_dollars,
        code_patches: code_patches(args, grading)?,
        allows_commands: allows_commands(args),
    };
    let (plan, inputs, note) = request.plan(&grading.dataset, &grading.settings)?;
    grading.settings.notes.extend(note);
    Ok((plan, inputs))
}

/// Returns whether the approaches may be programs: the user must have named them now, for this machine.
fn allows_commands(args: &Args) -> bool {
    args.replay.is_none() && args.database.is_none()
}

async fn make_runs(
    args: &Args,
    plan: &Plan,
    inputs: &Inputs,
    grading: &GradingRun,
    remote: Option<&StoreRuns>,
) -> Result<Summary> {
    let (harness, notes) = grading.harness().await?;
    let instances = grading
        .dataset
        .instances
        .iter()
        .map(|i| i.instance_id.as_str());
    let progress = Arc::new(ProgressLine::new(
        Some(plan.cells(instances).len()),
        args.grade.json,
    ));
    let workers = grading.workers();
    let all_notes = grading
        .settings
        .notes
        .iter()
        .chain(&notes)
        .chain(&workers.note);
    all_notes.for_each(|note| progress.print_note(note));
    let at_once = grading.limit_workers(RUNS_PER_WORKER * workers.number, MEMORY_PER_RUN);
    let reporter = progress.clone();
    let listener: StepListener = Arc::new(move |step| show_step(&reporter, step));
    let out = args.grade.out.as_deref().unwrap_or(&grading.out);
    let all = Schedule {
        plan,
        dataset: &grading.dataset,
        settings: &grading.settings,
        harness: &harness,
        folder: out,
        max_dollars: args.max_dollars,
        workers: workers.number,
        runs_at_once: match remote {
            Some(_) => REMOTE_RUNS,
            None => at_once.number,
        },
        recording: args.replay.as_deref(),
        inputs,
        remote: remote.map(|remote| remote as _),
        allows_commands: allows_commands(args),
    };
    let summary = all.run_plan(listener).await;
    progress.clear();
    summary
}

/// Registers the comparison with the workers of `--database`.
async fn remote_runs(
    args: &Args,
    plan: &Plan,
    settings: &Settings,
    out: &Path,
) -> Result<Option<StoreRuns>> {
    let Some(database) = &args.database else {
        return Ok(None);
    };
    if settings.run.prompts.is_some() {
        return Err(Error::usage("use the workers of --database")
            .cause("`run.prompts` names a folder of this machine")
            .hint("set the prompts in the settings of the workers, and remove them here"));
    }
    let remote = StoreRuns {
        batch: Batch::open(database, out, reserved_owners::COMPARE).await?,
        max_dollars: args.max_dollars,
        shared: CellSettings {
            limits: plan.limits.clone(),
            repositories: args.grade.repositories.clone(),
            test_seconds: args.grade.test_seconds,
            model: Some(ModelSettings::from_settings(settings)),
        },
    };
    remote.put_plan(plan).await?;
    Ok(Some(remote))
}

fn print_estimate(args: &Args, plan: &Plan, grading: &GradingRun, out: &Path) -> Result<u8> {
    plan.check_folder(out)?;
    let (dataset, settings) = (&grading.dataset, &grading.settings);
    let estimate = Estimate::new(plan, out, dataset, settings, args.max_dollars)?;
    match args.grade.json {
        true => output::print_json(&Versioned::new(&estimate))?,
        false => output::print_stdout(estimate.to_string()),
    }
    Ok(0)
}

fn print(args: &Args, report: &ComparisonReport, summary: &Summary) -> Result<u8> {
    if args.grade.json {
        output::print_json(&Versioned::new(report))?;
    } else {
        output::print_stdout(report.table(output::stdout_columns()));
        if let Some(out) = &args.grade.out {
            let page = out.join("report.html");
            output::print_status(escape_line(&format!("report: {}", page.display())));
        }
    }
    if let Some((runs, why)) = &summary.skipped_runs {
        return Err(
            Error::infrastructure(format!("complete {runs} of the runs"))
                .cause(why)
                .hint("run the same command again to resume"),
        );
    }
    let missing = report.systems.iter().any(|system| system.not_judged > 0);
    Ok(if missing { 3 } else { 0 })
}
