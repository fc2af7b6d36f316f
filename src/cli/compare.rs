//! `testwright compare`: the matrix of approaches, models, instances and samples, graded and reported.

mod progress;

use std::path::PathBuf;
use std::sync::Arc;

use super::eval::GradeArgs;
use super::eval::grading::GradingRun;
use super::output::{self, single_line};
use super::place::load;
use super::place::names::approaches;
use crate::approaches::{ModelKind, Variant};
use crate::compare::report::{self, Report};
use crate::compare::{
    GRADING, Plan, Schedule, StepListener, Summary, System, prediction_sets, write_predictions,
};
use crate::error::{Error, Result};
use crate::model::price::Prices;
use crate::settings::Settings;
use progress::CompareProgress;

#[derive(Debug, clap::Args)]
#[command(after_help = format!("Approaches:\n{}", approaches().described()))]
pub struct Args {
    #[command(flatten)]
    grade: GradeArgs,
    /// Approaches, separated by commas; options of one stand behind it: otter,otter:planner=off
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        required_unless_present = "replay"
    )]
    approaches: Vec<String>,
    /// Models, separated by commas [default: the model of the settings]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    models: Vec<String>,
    /// Runs of each approach with each model on each instance
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// Most dollars of the whole comparison: never passed, failed calls included
    #[arg(long, value_name = "X")]
    max_dollars: Option<f64>,
    /// Most model calls of a run
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Most tokens of a run, prompt and completion together
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Most minutes of a run, once its environment is there
    #[arg(long, value_name = "M")]
    max_minutes: Option<f64>,
    /// Folder of prompts of your own: NAME.md stands in for the prompt of that name
    #[arg(long, value_name = "DIR")]
    prompts: Option<PathBuf>,
    /// Make no runs: grade and report what is there
    #[arg(long)]
    no_runs: bool,
    /// Play the models' part of the comparison in this folder again, without any model; it says which approaches, models
    /// and samples there are
    #[arg(long, value_name = "DIR", conflicts_with_all = ["approaches", "models", "samples", "max_dollars"])]
    replay: Option<PathBuf>,
}

/// Runs that go on at one time, for each worker: most of them wait for a model.
const RUNS_A_WORKER: usize = 4;
/// Memory that a run may be expected to take while it waits.
const MEMORY_A_RUN: u64 = 1 << 30;

pub async fn run(args: &Args) -> Result<u8> {
    let Some(out) = &args.grade.out else {
        return Err(Error::usage("compare").cause("--out is needed"));
    };
    let recorded = match &args.replay {
        Some(folder) => Some(Plan::read(folder)?.ok_or_else(|| {
            Error::usage(format!("replay {}", folder.display()))
                .cause("it has no comparison.json")
                .hint("name a folder that `testwright compare --out` wrote")
        })?),
        None => None,
    };
    let settings = settings(args, recorded.as_ref())?;
    let mut grading = GradingRun::with_settings(&args.grade, settings)?;
    grading.out = out.join(GRADING);
    let plan = match recorded {
        Some(recorded) => Plan {
            instances: Plan::new(&grading.dataset, Vec::new(), 1, &grading.settings).instances,
            ..recorded
        },
        None => new_plan(args, &grading)?,
    };
    plan.write(out)?;
    let summary = match args.no_runs {
        true => Summary::of_folder(out, &plan)?,
        false => make_runs(args, &plan, &grading).await?,
    };
    let sets = prediction_sets(&plan, &summary.runs);
    write_predictions(out, &sets)?;
    if summary.interrupted {
        return Err(Error::interrupted("compare: interrupted")
            .hint("the same command goes on with what is there"));
    }
    grading.grade(&sets, Vec::new()).await?;
    let report = report::write(out)?;
    print(args, &report, &summary)
}

fn settings(args: &Args, recorded: Option<&Plan>) -> Result<Settings> {
    let limits = recorded.map(|plan| &plan.limits);
    let settings = load(&args.grade.sandbox.sources(|flags| {
        let steps = args.max_steps.or(limits.map(|limits| limits.steps));
        flags.set("run.max-steps", steps);
        let tokens = args.max_tokens.or(limits.and_then(|limits| limits.tokens));
        flags.set("run.max-tokens", tokens);
        let minutes = args.max_minutes.or(limits.map(|limits| limits.minutes));
        flags.set("run.max-minutes", minutes);
        flags.set("run.prompts", args.prompts.clone());
    }))?;
    Ok(settings)
}

fn new_plan(args: &Args, grading: &GradingRun<'_>) -> Result<Plan> {
    let settings = &grading.settings;
    let variants: Vec<Variant> = args
        .approaches
        .iter()
        .map(|name| Variant::parse(name.trim()))
        .collect::<Result<_>>()?;
    let mut models: Vec<String> = args
        .models
        .iter()
        .map(|name| name.trim().to_owned())
        .collect();
    if models.is_empty() {
        models.extend(settings.run.model.clone());
    }
    if args.max_dollars.is_some() {
        let prices = Prices::from(&settings.prices);
        let speaks = variants
            .iter()
            .any(|v| v.approach.model() == ModelKind::Language);
        if let Some(unpriced) = models.iter().find(|m| speaks && prices.of(m).is_none()) {
            return Err(Error::usage("keep to --max-dollars")
                .cause(format!("the model `{unpriced}` has no price in the settings"))
                .hint(format!("add [prices.\"{unpriced}\"] with prompt and completion, dollars per million tokens")));
        }
    }
    let systems = System::all(&variants, &models)?;
    Ok(Plan::new(&grading.dataset, systems, args.samples, settings))
}

async fn make_runs(args: &Args, plan: &Plan, grading: &GradingRun<'_>) -> Result<Summary> {
    let (harness, notes) = grading.harness().await?;
    let instances = grading
        .dataset
        .instances
        .iter()
        .map(|i| i.instance_id.as_str());
    let progress = Arc::new(CompareProgress::new(
        plan.cells(instances).len(),
        args.grade.json,
    ));
    let workers = grading.workers();
    let all_notes = grading
        .settings
        .notes
        .iter()
        .chain(&notes)
        .chain(&workers.note);
    all_notes.for_each(|note| progress.note(&format!("note: {note}")));
    let at_once = grading.fit(RUNS_A_WORKER * workers.number, MEMORY_A_RUN);
    let shown = progress.clone();
    let listener: StepListener = Arc::new(move |step| shown.step(step));
    let out = args.grade.out.as_deref().unwrap_or(&grading.out);
    let all = Schedule {
        plan,
        dataset: &grading.dataset,
        settings: &grading.settings,
        harness: &harness,
        folder: out,
        max_dollars: args.max_dollars,
        workers: workers.number,
        runs_at_once: at_once.number,
        recording: args.replay.as_deref(),
    };
    let summary = all.work(listener).await;
    progress.clear();
    summary
}

fn print(args: &Args, report: &Report, summary: &Summary) -> Result<u8> {
    if args.grade.json {
        output::json(report)?;
    } else {
        output::out(report.table());
        if let Some(out) = &args.grade.out {
            let page = out.join("report.html");
            output::err(single_line(&format!("report: {}", page.display())));
        }
    }
    if let Some((runs, why)) = &summary.not_made {
        return Err(Error::infrastructure(format!("make {runs} of the runs"))
            .cause(why)
            .hint("the same command goes on with what is there"));
    }
    let missing = report.systems.iter().any(|system| system.not_judged > 0);
    Ok(if missing { 3 } else { 0 })
}
