//! `testwright run`: the main job.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_sandboxes::repository::Source;

use super::output::{self, single_line};
use super::place::PlaceArgs;
use super::{evidence_card, terminal::Terminal};
use crate::agent::{Budget, Limits, Outcome, Progress, Replay, Run, RunParts, RunUsage};
use crate::approaches::ApproachContext;
use crate::error::{Error, Result};
use crate::issues::{self, Issue};
use crate::settings::Settings;
use crate::setup::{RepositoryLocation, Setup};
use crate::trajectory::event::FORMAT;
use crate::trajectory::{Event, RunFolder, Started};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A GitHub issue URL, a Markdown or text file, or `-` for standard input
    #[arg(required_unless_present = "resume")]
    issue: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
    /// The approach: testwright, swe-agent-plus, snippet
    #[arg(long, value_name = "NAME")]
    approach: Option<String>,
    /// The model, as its provider calls it; `snippet` needs no key; `replay:FILE` plays a recording
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Folder for the results [default: testwright-runs/TIME-ISSUE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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

/// The content of `run.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    pub testwright: String,
    pub issue: Value,
    pub repository: String,
    pub commit: Option<String>,
    pub approach: String,
    pub model: String,
    /// Settings in force, without secrets.
    pub settings: Value,
    /// What isolation was in force, and where things lay.
    pub sandbox: Value,
    pub environment: Value,
    #[serde(flatten)]
    pub outcome: Outcome,
    pub exit_code: u8,
    pub usage: RunUsage,
    pub seconds: f64,
    pub notes: Vec<String>,
}

pub async fn run(args: &Args) -> Result<u8> {
    let terminal = Arc::new(Terminal::new(args.json));
    let job = match &args.resume {
        Some(folder) => Job::resumed(args, folder)?,
        None => Job::new(args).await?,
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

/// A run, before it starts.
struct Job {
    settings: Settings,
    issue: Issue,
    place: RepositoryLocation,
    approach: String,
    model: String,
    out: PathBuf,
    events: Vec<Event>,
    folder: Option<RunFolder>,
    record: Option<PathBuf>,
    notes: Vec<String>,
}

impl Job {
    async fn new(args: &Args) -> Result<Self> {
        let settings = args.place.settings(|flags| {
            flags.set("run.approach", args.approach.clone());
            flags.set("run.model", args.model.clone());
            flags.set("run.out", args.out.clone());
            flags.set("run.max-steps", args.max_steps);
            flags.set("run.max-dollars", args.max_dollars);
            flags.set("run.max-tokens", args.max_tokens);
            flags.set("run.max-minutes", args.max_minutes);
        })?;
        let selection = settings.select_model()?;
        let named = args.issue.as_deref().unwrap_or("-");
        let issue = issues::load(
            named,
            &issues::Options::from_settings(&settings, args.comments),
        )
        .await?;
        let out = match &settings.run.out {
            Some(out) => out.clone(),
            None => {
                RunFolder::check_unnamed(Path::new(RUNS)).map_err(trajectory_error)?;
                default_out(&issue)
            }
        };
        let mut notes = settings.notes.clone();
        notes.extend(selection.note);
        notes.extend(issue.notes.clone());
        Ok(Job {
            place: args.place.place(Some(&issue)),
            settings,
            issue,
            approach: selection.approach,
            model: selection.model,
            out,
            events: Vec::new(),
            folder: None,
            record: args.record.clone(),
            notes,
        })
    }

    fn resumed(args: &Args, path: &Path) -> Result<Self> {
        let (folder, events) = RunFolder::reopen(path).map_err(|error| {
            Error::usage(error.to_string())
                .hint("--resume takes the folder of a run that was cut short")
        })?;
        let Some(Event::Started(started)) = events.first() else {
            return Err(Error::usage(format!("go on with {}", path.display()))
                .cause("its trajectory has no beginning: the run had not started yet")
                .hint("start it anew"));
        };
        if let Some(Event::Ended { outcome }) = events.last() {
            return Err(Error::usage(format!("go on with {}", path.display()))
                .cause(format!("that run has ended: {}", outcome.summary())));
        }
        let resumable: Resumable =
            serde_json::from_value(started.settings.clone()).map_err(|error| {
                Error::usage(format!("read the settings recorded in {}", path.display()))
                    .cause(error.to_string())
            })?;
        // Secrets are not recorded: they, and budgets raised by flags, come from today's settings.
        let mut settings = args.place.settings(|flags| {
            flags.set(
                "run.max-steps",
                args.max_steps.or(Some(resumable.max_steps)),
            );
            flags.set(
                "run.max-dollars",
                args.max_dollars.or(resumable.max_dollars),
            );
            flags.set("run.max-tokens", args.max_tokens.or(resumable.max_tokens));
            flags.set(
                "run.max-minutes",
                args.max_minutes.or(Some(resumable.max_minutes)),
            );
            flags.set("run.sandbox", Some(resumable.sandbox.clone()));
            flags.set("run.image", resumable.image.clone());
            flags.set("run.python", resumable.python.clone());
        })?;
        settings.run.out = Some(path.to_owned());
        let notes = settings.notes.clone();
        Ok(Job {
            settings,
            issue: started.issue.clone(),
            place: RepositoryLocation {
                location: resumable.repository,
                revision: started.commit.clone(),
            },
            approach: started.approach.clone(),
            model: started.model.clone(),
            out: path.to_owned(),
            events,
            folder: Some(folder),
            record: args.record.clone(),
            notes,
        })
    }

    /// Where a commit was asked for, comments that are newer than it stay out of a new run.
    fn forget_newer_comments(&mut self, source: &Source, progress: &dyn Progress) {
        let date = source.date.as_deref().and_then(|date| date.parse().ok());
        let (Some(_), true, Some(date)) = (&self.place.revision, self.events.is_empty(), date)
        else {
            return;
        };
        let known = self.issue.notes.len();
        self.issue.drop_comments_newer_than_code(date);
        for note in &self.issue.notes[known..] {
            progress.note(note);
            self.notes.push(note.clone());
        }
    }

    /// From the old code to the results on disk.
    async fn work(mut self, progress: Arc<Terminal>) -> Result<(Record, PathBuf)> {
        for note in &self.notes {
            progress.note(note);
        }
        let approach = super::approach(&self.approach)?;
        let model = crate::setup::model(
            &self.settings,
            &self.model,
            self.record.take(),
            progress.clone(),
        )?;
        let setup = Setup::new(&self.settings, progress.clone()).await?;
        if self.folder.is_none() {
            RunFolder::check_free(&self.out).map_err(trajectory_error)?;
        }
        let recorded = match self.events.first() {
            Some(Event::Started(started)) => Some(started.digest.as_str()),
            _ => None,
        };
        let (source, environment, session) = setup.start_session(&self.place, recorded).await?;
        self.forget_newer_comments(&source, progress.as_ref());
        let create = || match self.settings.run.out {
            Some(_) => RunFolder::create(&self.out),
            None => RunFolder::create_unnamed(&self.out),
        };
        // Nothing is left running where the folder cannot be written.
        let mut folder = match self.folder.map_or_else(create, Ok) {
            Ok(folder) => folder,
            Err(error) => {
                session.close().await?;
                return Err(trajectory_error(error));
            }
        };
        let first = if self.events.is_empty() {
            Event::Started(Box::new(Started {
                format: FORMAT,
                at: jiff::Timestamp::now().to_string(),
                testwright: env!("CARGO_PKG_VERSION").to_owned(),
                approach: self.approach.clone(),
                model: self.model.clone(),
                issue: self.issue.clone(),
                repository: source.name.clone(),
                commit: source.commit.clone(),
                digest: source.digest.clone(),
                settings: serde_json::to_value(Resumable::new(&self.settings, &self.place))
                    .unwrap_or_default(),
                tools: approach.tools(),
            }))
        } else {
            Event::Resumed {
                at: jiff::Timestamp::now().to_string(),
            }
        };
        if let Err(error) = folder.append(&first) {
            session.close().await?;
            return Err(trajectory_error(error));
        }
        let facts = serde_json::to_value(session.facts()).unwrap_or_default();
        let mut notes = self.notes;
        notes.extend(source.notes.clone());
        notes.extend(environment.notes.clone());
        let limits = limits(&self.settings);
        let context = ApproachContext {
            max_steps: limits.steps.unwrap_or(u32::MAX),
            notes: environment.notes.clone(),
        };
        let mut run = Run::new(RunParts {
            issue: self.issue.clone(),
            source: source.clone(),
            model,
            session,
            folder,
            budget: Budget::new(limits),
            replay: Replay::resume(self.events),
            progress: progress.clone(),
            max_tokens: self.settings.model.max_tokens,
            temperature: self.settings.model.temperature,
        });
        let outcome = tokio::select! {
            outcome = approach.run(&mut run, &context) => outcome,
            () = crate::setup::interrupted() => Outcome::Interrupted,
        };
        let (budget, folder, _) = run.finish(&outcome).await;
        let record = Record {
            testwright: env!("CARGO_PKG_VERSION").to_owned(),
            issue: serde_json::json!({ "title": self.issue.title, "origin": self.issue.origin }),
            repository: source.name,
            commit: source.commit,
            approach: self.approach,
            model: self.model,
            settings: self.settings.record(),
            sandbox: facts,
            environment: serde_json::to_value(&environment).unwrap_or_default(),
            exit_code: outcome.exit_code(),
            outcome,
            seconds: budget.elapsed().as_secs_f64(),
            usage: budget.spent,
            notes,
        };
        write_results(&folder, &record)?;
        Ok((record, folder.path().to_owned()))
    }
}

/// What the start of a trajectory keeps of the settings, so that the run can go on with them.
#[derive(Debug, Serialize, Deserialize)]
struct Resumable {
    /// Where the old code came from: an absolute path or a URL.
    repository: String,
    sandbox: String,
    image: Option<String>,
    python: Option<String>,
    max_steps: u64,
    max_dollars: Option<f64>,
    max_tokens: Option<u64>,
    max_minutes: f64,
}

impl Resumable {
    fn new(settings: &Settings, place: &RepositoryLocation) -> Self {
        let absolute = std::path::absolute(&place.location)
            .ok()
            .filter(|path| path.exists())
            .map(|path| path.to_string_lossy().into_owned());
        Resumable {
            repository: absolute.unwrap_or_else(|| place.location.clone()),
            sandbox: settings.run.sandbox.name().to_owned(),
            image: settings.run.image.clone(),
            python: settings.run.python.clone(),
            max_steps: settings.run.max_steps,
            max_dollars: settings.run.max_dollars,
            max_tokens: settings.run.max_tokens,
            max_minutes: settings.run.max_minutes,
        }
    }
}

fn limits(settings: &Settings) -> Limits {
    Limits {
        steps: Some(u32::try_from(settings.run.max_steps).unwrap_or(u32::MAX)),
        dollars: settings.run.max_dollars,
        tokens: settings.run.max_tokens,
        minutes: Some(settings.run.max_minutes),
    }
}

fn write_results(folder: &RunFolder, record: &Record) -> Result<()> {
    if let Outcome::Accepted { patch, evidence } = &record.outcome {
        folder
            .write("test.patch", patch.as_bytes())
            .map_err(trajectory_error)?;
        folder
            .write_json("evidence.json", evidence)
            .map_err(trajectory_error)?;
    }
    if let Outcome::Refused { patch, .. } = &record.outcome {
        folder
            .write("refused.patch", patch.as_bytes())
            .map_err(trajectory_error)?;
    }
    folder
        .write_json("run.json", record)
        .map_err(trajectory_error)
}

fn trajectory_error(error: crate::trajectory::TrajectoryError) -> Error {
    use crate::trajectory::TrajectoryError;
    match &error {
        TrajectoryError::Occupied { path } => Error::usage(error.to_string()).hint(format!(
            "choose another --out, or go on with that run: testwright run --resume {}",
            path.display()
        )),
        TrajectoryError::Link { .. } => {
            Error::usage(error.to_string()).hint("name the folder for the results with --out DIR")
        }
        TrajectoryError::Busy { .. } => {
            Error::usage(error.to_string()).hint("wait for it, or choose another --out")
        }
        _ => Error::infrastructure(error.to_string())
            .hint("see to it that the folder can be written and the disk has room"),
    }
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
