//! `testwright clover eval`: evaluates models on problems, with single calls or with agents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use testwright_evals::clover::evaluation::Grade;
use testwright_evals::clover::folder::Benchmark;
use testwright_evals::clover::report::CloverReport;
use testwright_evals::clover::{Budget, Task, VERSION};
use testwright_evals::document::format::seconds;
use testwright_evals::folder::Versioned;
use testwright_evals::harness::Harness;
use testwright_evals::report::RunMetadata;

use super::progress::CloverProgress;
use super::report::print;
use super::{open_harness, workers};
use crate::cli::headings::{DATA, LIMITS, MODEL, OUTPUT};
use crate::cli::output::{self, escape_line};
use crate::cli::output_folder;
use crate::cli::repository_args::{SandboxArgs, load_settings};
use testwright_agent::agent::Progress as _;
use testwright_agent::setup::or_interrupted;
use testwright_comparisons::clover::agents::Agents;
use testwright_comparisons::clover::asking::{AskingSummary, Questioner};
use testwright_comparisons::clover::evaluation::{self, GradingTask, answer_costs};
use testwright_comparisons::clover::plan::{ModelQuestion, Plan, SINGLE_CALL, check_approaches};
use testwright_comparisons::grading::reporting;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::ModelName;
use testwright_models::price::check_price;
use testwright_models::quota::check_budget;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of problems from `testwright clover build`
    #[arg(value_name = "DIR")]
    problems: PathBuf,
    /// Models, separated by commas [default: the model of the settings]
    #[arg(short, long, help_heading = MODEL, value_name = "NAMES", value_delimiter = ',')]
    models: Vec<String>,
    /// Approaches, separated by commas: single-call or cover. `cover` is an agent that sees which
    /// lines its tests miss (task 3 only)
    #[arg(
        long = "approach",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = SINGLE_CALL
    )]
    approaches: Vec<String>,
    /// Tasks to evaluate, numbered as in `testwright clover build`
    #[arg(
        long, help_heading = DATA,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1,2,3"
    )]
    tasks: Vec<Task>,
    /// Token budgets, separated by commas. A budget covers the prompt and answer of a single call,
    /// or all calls of an agent; `po` (problem only) shows only the test file. Task 3 supports only
    /// 64k and 128k
    #[arg(
        long, help_heading = DATA,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "po,4k,8k,16k,32k,64k,128k"
    )]
    context: Vec<Budget>,
    /// Ask only for the missing part: the expression in the blank instead of the whole assertion,
    /// or the statements of the test instead of the whole file
    #[arg(long, help_heading = MODEL)]
    part: bool,
    /// Maximum number of problems for each task [default: all]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    limit: Option<usize>,
    /// Maximum cost of all calls in US dollars, including failed calls [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "X")]
    max_dollars: Option<f64>,
    /// Maximum tokens of an answer; raise it for models that reason first [default: 200 for task 1, 4000 for
    /// tasks 2 and 3]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    max_tokens: Option<u64>,
    /// Maximum concurrent model calls and agent runs
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 4)]
    calls: usize,
    /// Maximum concurrent sandboxes [default: the number of CPUs]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    workers: Option<usize>,
    /// Maximum seconds to run an answer
    #[arg(long, help_heading = LIMITS, value_name = "SECONDS", default_value_t = 60)]
    test_seconds: u64,
    /// Judge and report the existing replies without calling models
    #[arg(long, help_heading = OUTPUT)]
    no_calls: bool,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Folder for replies, judgements and the report. Run again with the same folder to resume
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    out: PathBuf,
    /// Print only the report (report.json), for programs
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    let begun = Instant::now();
    output_folder::check_is_folder(&args.out)?;
    let settings = load_settings(&args.sandbox.sources(|_| {}))?;
    let benchmark = Benchmark::read(&args.problems).map_err(|error| {
        Error::usage(format!("read {}", args.problems.display()))
            .cause(error)
            .hint("pass a folder that `testwright clover build --out` wrote")
    })?;
    let plan = plan(args, &settings, &benchmark)?;
    let asks = plan.asks(&benchmark);
    if asks.is_empty() {
        return Err(Error::usage("start the evaluation")
            .cause("no problem has these tasks and contexts")
            .hint("choose others with --tasks and --context; task 3 needs 64k or 128k"));
    }
    plan.write(&args.out)?;
    // Opening the harness first avoids paying for answers that cannot be judged here.
    let (harness, notes) = open_harness(&settings, &args.out, args.test_seconds).await?;
    for note in &notes {
        output::print_status(escape_line(&format!("note: {note}")));
    }
    let run = RunMetadata {
        dataset: Some(args.problems.display().to_string()),
        dataset_sha256: Some(plan.problems_sha256.clone()),
        sandbox: Some(harness.backend.name().to_owned()),
        pythons: harness.pythons.clone(),
        ..RunMetadata::of_this_machine()
    };
    run.write(&args.out).map_err(reporting)?;
    let summary = match args.no_calls {
        true => AskingSummary::default(),
        false => ask(args, &settings, &benchmark, &harness, &asks).await?,
    };
    if summary.interrupted {
        return Err(Error::interrupted());
    }
    let judged_from = Instant::now();
    let judgements = judge(args, &benchmark, &harness, &asks).await?;
    let mut facts = vec![
        ("Problems".to_owned(), args.problems.display().to_string()),
        ("Questions".to_owned(), asks.len().to_string()),
        ("Judged answers".to_owned(), judgements.len().to_string()),
        (
            "Judging took".to_owned(),
            seconds(judged_from.elapsed().as_secs_f64()),
        ),
        (
            "Total time".to_owned(),
            seconds(begun.elapsed().as_secs_f64()),
        ),
    ];
    facts.extend(evaluation::cost_facts(&args.out)?);
    let report = CloverReport::from_grades(&judgements, &answer_costs(&args.out)?, facts);
    let page = evaluation::write(&args.out, &report)?;
    match args.json {
        true => output::print_json(&Versioned::new(&report))?,
        false => print(&report, &page),
    }
    match summary.not_asked {
        Some((questions, why)) => Err(Error::infrastructure(format!(
            "ask {questions} of the questions"
        ))
        .cause(why)
        .hint("run the same command again to resume")),
        None => Ok(0),
    }
}

fn plan(args: &Args, settings: &Settings, benchmark: &Benchmark) -> Result<Plan> {
    // Users may put a space after each comma.
    let model_names = args.models.iter().map(|name| name.trim());
    let default = settings.run.model.as_deref();
    let default = default.filter(|_| args.models.is_empty());
    let models = model_names.chain(default).map(ModelName::parse);
    let models = unique(models.collect::<Result<Vec<_>>>()?);
    if models.is_empty() {
        return Err(Error::usage("start the evaluation")
            .cause("no model is set")
            .hint("add --models NAMES, or set TESTWRIGHT_MODEL"));
    }
    check_prices(args, settings, &models)?;
    let (mut tasks, mut budgets) = (args.tasks.clone(), args.context.clone());
    tasks.sort_unstable();
    tasks.dedup();
    budgets.sort_unstable();
    budgets.dedup();
    let approaches = unique(args.approaches.iter().map(|name| name.trim().to_owned()));
    check_approaches(&approaches, &tasks)?;
    Ok(Plan {
        version: VERSION.to_owned(),
        problems_sha256: Plan::hash(benchmark)?,
        models: models.iter().map(ToString::to_string).collect(),
        approaches,
        tasks,
        budgets,
        part: args.part,
        limit: args.limit,
    })
}

/// Returns the names in order, each once: a question must not be asked and counted twice.
fn unique<T: PartialEq>(names: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

/// Checks that the limits in dollars, of the evaluation and of each agent, can be enforced and allow a call.
fn check_prices(args: &Args, settings: &Settings, models: &[ModelName]) -> Result<()> {
    if args.no_calls || (args.max_dollars.is_none() && settings.run.max_dollars.is_none()) {
        return Ok(());
    }
    let shortest = args
        .tasks
        .iter()
        .map(|task| task.max_answer_tokens() as u64);
    let tokens = args.max_tokens.or(shortest.min());
    models.iter().try_for_each(|model| {
        check_price(settings, model)?;
        match args.max_dollars {
            Some(dollars) => check_budget(settings, model, dollars, tokens),
            None => Ok(()),
        }
    })
}

async fn ask(
    args: &Args,
    settings: &Settings,
    benchmark: &Benchmark,
    harness: &Harness,
    asks: &[ModelQuestion<'_>],
) -> Result<AskingSummary> {
    let progress = Arc::new(CloverProgress::new(Some(asks.len()), args.json));
    settings.notes.iter().for_each(|note| progress.note(note));
    let is_for_agents = asks.iter().any(ModelQuestion::is_for_agent);
    let agents = is_for_agents.then(|| {
        Agents::new(
            settings,
            harness,
            benchmark,
            &args.out,
            args.max_tokens,
            workers(args.workers),
            progress.clone(),
        )
    });
    let asking = Questioner {
        agents,
        settings,
        benchmark,
        folder: &args.out,
        max_dollars: args.max_dollars,
        max_tokens: args.max_tokens,
        at_once: args.calls,
        progress: progress.clone(),
    };
    let reporter = progress.clone();
    let ended = move |ask: &ModelQuestion<'_>, fresh: bool| {
        reporter.advance(fresh);
        if fresh {
            reporter.status(&format!(
                "{} at {}: {}",
                ask.problem.id,
                ask.budget,
                ask.system()
            ));
        }
    };
    let summary = asking.ask(asks, &ended).await;
    progress.clear();
    summary
}

async fn judge(
    args: &Args,
    benchmark: &Benchmark,
    harness: &Harness,
    asks: &[ModelQuestion<'_>],
) -> Result<Vec<Grade>> {
    let progress = CloverProgress::new(None, args.json);
    let report = |text: &str| progress.status(text);
    let judging = GradingTask {
        harness,
        benchmark,
        folder: &args.out,
        workers: workers(args.workers),
        timeout: Duration::from_secs(args.test_seconds),
        report: &report,
    };
    let judged = or_interrupted(&*harness.backend, judging.judge(asks)).await;
    progress.clear();
    judged
}

#[cfg(test)]
mod tests;
