//! `testwright run`: from arguments to a [`Job`], and what it comes to on the terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::output::{self, single_line};
use super::place::PlaceArgs;
use super::place::names::{approaches, sandboxes};
use super::{evidence_card, terminal::Terminal};
use crate::agent::Outcome;
use crate::approaches::given::{self, Given};
use crate::approaches::{Variant, model_selection};
use crate::error::{Error, Result};
use crate::issues::{self, Issue};
use crate::job::{Job, RecordedRun};
use crate::own_prompts;
use crate::settings::Effort;
use crate::trajectory::RunFolder;

#[derive(Debug, clap::Args)]
#[command(after_help = format!(
    "Approaches:\n{}\n\nSandboxes:\n{}",
    approaches().described(),
    sandboxes().described()
))]
pub struct Args {
    /// A GitHub issue URL, a Markdown or text file, or `-` for standard input
    #[arg(required_unless_present = "resume")]
    issue: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
    #[arg(
        long,
        value_name = "NAME",
        help = format!("The approach: {}", approaches().listed()),
        value_parser = approaches(),
        hide_possible_values = true
    )]
    approach: Option<String>,
    /// What the approach may spend on the test: each level stands for options of the approach
    #[arg(long, value_name = "LEVEL", value_enum)]
    effort: Option<Effort>,
    /// A code patch that may be right or wrong, for approaches with given-patch=on or given-files=on
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    code_patch: Option<PathBuf>,
    /// A test file to change, by its path in the repository, for approaches with given-tests=on; several times for several files
    #[arg(long, value_name = "PATH", conflicts_with = "resume")]
    test_file: Vec<String>,
    /// Least confidence, from 0 to 1, with which a test is handed over
    #[arg(long, value_name = "X")]
    min_confidence: Option<f64>,
    /// The model, as its provider calls it; `snippet` needs no key; `replay:FILE` plays a recording
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Folder for the results [default: testwright-runs/TIME-ISSUE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder of prompts of your own: NAME.md stands in for the prompt of that name
    #[arg(long, value_name = "DIR")]
    prompts: Option<PathBuf>,
    /// Most model calls
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Most dollars, where the model has a price in the settings
    #[arg(long, value_name = "X")]
    max_dollars: Option<f64>,
    /// Most tokens, prompt and completion together
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Most minutes, once the environment is there
    #[arg(long, value_name = "M")]
    max_minutes: Option<f64>,
    /// With a GitHub issue: its comments too, as far as they are older than the fix (and than --commit)
    #[arg(long)]
    comments: bool,
    /// Go on with the run recorded in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "issue")]
    resume: Option<PathBuf>,
    /// Append all traffic with the model to this file, for `--model replay:FILE`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print the record (run.json) alone, for programs
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args) -> Result<u8> {
    let terminal = Arc::new(Terminal::new(args.json));
    let job = match &args.resume {
        Some(folder) => resumed_job(args, folder)?,
        None => new_job(args).await?,
    };
    let record = job.work(terminal.clone()).await;
    terminal.clear();
    let (record, folder) = record?;
    if args.json {
        output::json(&record)?;
    } else {
        output::out(evidence_card::render(&record.outcome));
        output::err(single_line(&format!("results: {}", folder.display())));
    }
    if let Some(error) = failure(&record.outcome)
        && !args.json
    {
        output::err(error.render());
    }
    Ok(record.exit_code)
}

/// What ended the run and is not the test's fault.
fn failure(outcome: &Outcome) -> Option<Error> {
    let (error, hint) = match outcome {
        Outcome::Infrastructure { message, hint } => (Error::infrastructure(message.clone()), hint),
        Outcome::ModelFailed { message, hint } => {
            let error = Error::infrastructure("get an answer from the model");
            (error.cause(message), hint)
        }
        _ => return None,
    };
    Some(match hint {
        Some(hint) => error.hint(hint.clone()),
        None => error,
    })
}

/// A new run.
async fn new_job(args: &Args) -> Result<Job> {
    let settings = args.place.settings(|flags| {
        flags.set("run.approach", args.approach.clone());
        flags.set("run.effort", args.effort);
        flags.set("run.min-confidence", args.min_confidence);
        flags.set("run.model", args.model.clone());
        flags.set("run.out", args.out.clone());
        flags.set("run.prompts", args.prompts.clone());
        flags.set("run.max-steps", args.max_steps);
        flags.set("run.max-dollars", args.max_dollars);
        flags.set("run.max-tokens", args.max_tokens);
        flags.set("run.max-minutes", args.max_minutes);
    })?;
    let selection = model_selection::select(&settings)?;
    let mut approach = Variant::parse(&selection.approach)?;
    let given = given(args)?;
    given.check_options(&approach)?;
    let named = args.issue.as_deref().unwrap_or("-");
    let issue = issues::load(
        named,
        &issues::Options::from_settings(&settings, args.comments),
    )
    .await?;
    let out = match &settings.run.out {
        Some(out) => out.clone(),
        None => {
            RunFolder::check_unnamed(Path::new(RUNS))?;
            default_out(&issue)
        }
    };
    let mut notes = settings.notes.clone();
    notes.extend(selection.note);
    notes.extend(issue.notes.clone());
    if let Some(effort) = settings.run.effort {
        match approach.clone().at_effort(effort) {
            Some(at_effort) => approach = at_effort,
            None => notes.push(format!(
                "the approach `{}` has no levels of effort; `testwright approaches` shows its options",
                approach.approach.name()
            )),
        }
    }
    Ok(Job {
        place: args.place.place(Some(&issue)),
        settings,
        issue,
        approach,
        given,
        model: selection.model,
        out,
        recorded: None,
        traffic: args.record.clone(),
        sink: None,
        quota: None,
        stop: None,
        notes,
    })
}

/// What the flags give beyond the issue.
fn given(args: &Args) -> Result<Given> {
    let mut given = Given::default();
    if let Some(path) = &args.code_patch {
        given.code_patch = Some(given::read_patch(path)?);
    }
    for named in &args.test_file {
        let path = given::test_path(named)?;
        if !given.test_files.contains(&path) {
            given.test_files.push(path);
        }
    }
    Ok(given)
}

/// A run that was cut short, from there on.
fn resumed_job(args: &Args, path: &Path) -> Result<Job> {
    let recorded = RecordedRun::open(path)?;
    // Secrets are not recorded: they, and budgets raised by flags, come from today's settings.
    let settings = args.place.settings(|flags| {
        flags.set(
            "run.max-steps",
            args.max_steps.or(Some(recorded.settings.max_steps)),
        );
        flags.set(
            "run.max-dollars",
            args.max_dollars.or(recorded.settings.max_dollars),
        );
        flags.set(
            "run.max-tokens",
            args.max_tokens.or(recorded.settings.max_tokens),
        );
        flags.set(
            "run.max-minutes",
            args.max_minutes.or(Some(recorded.settings.max_minutes)),
        );
        flags.set(
            "run.min-confidence",
            args.min_confidence.or(recorded.settings.min_confidence),
        );
        flags.set("run.prompts", args.prompts.clone());
        flags.set("run.sandbox", Some(recorded.settings.sandbox.clone()));
        flags.set("run.image", recorded.settings.image.clone());
        flags.set("run.python", recorded.settings.python.clone());
    })?;
    own_prompts::check_same(
        recorded.settings.prompts.as_deref(),
        Error::usage(format!("go on with {}", path.display())),
    )?;
    let approach = Variant::parse(&recorded.started.approach)?;
    let mut job = Job::resumed(recorded, settings, approach);
    job.traffic = args.record.clone();
    Ok(job)
}

/// In the current folder.
const RUNS: &str = "testwright-runs";

/// `testwright-runs/2025-01-31T120000-first-words-of-the-title`
fn default_out(issue: &Issue) -> PathBuf {
    let words: Vec<String> = issue
        .title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(6)
        .map(str::to_lowercase)
        .collect();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%S");
    Path::new(RUNS).join(format!("{now}-{}", words.join("-")))
}
