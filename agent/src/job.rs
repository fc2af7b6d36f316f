//! A run from the old code to the results on disk, for any caller.

mod recorded_run;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_sandboxes::environment::{Environment, SharedEnvironments};
use testwright_sandboxes::repository::Source;
use testwright_tools::visible;

use crate::agent::{
    Budget, Limits, Outcome, ProcessorShare, Progress, Replay, Run, RunParts, RunUsage,
};
use crate::approaches::given::{Given, lines};
use crate::approaches::{ApproachContext, Variant};
use crate::issues::Issue;
use crate::session::Session;
use crate::setup::{self, ModelArgs, RepositoryLocation, Setup, SourceCheck, WantedLines};
use crate::trajectory::event::FORMAT;
use crate::trajectory::{Event, EventSink, RunFolder, Started};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_config::stop_signal::{StopSignal, stopped};
use testwright_models::quota::Quota;
use testwright_models::{Model, ModelName};

pub use recorded_run::{RecordedRun, RecordedSettings};

/// The content of `run.json`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of testwright.
    pub testwright: String,
    /// Title and origin of the issue.
    pub issue: Value,
    /// `owner/name` or a folder's name.
    pub repository: String,
    /// The old code.
    pub commit: Option<String>,
    /// Name of the approach.
    pub approach: String,
    /// Name of the model.
    pub model: String,
    /// Settings in force, without secrets.
    pub settings: Value,
    /// What the approach was given beyond the issue, as its options ask for.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub given: Given,
    /// What isolation was in force, and where things lay.
    pub sandbox: Value,
    /// Its recipe, Python and packages, the log of its build, and whether it came from the cache.
    pub environment: Value,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What the command ended with.
    pub exit_code: u8,
    pub usage: RunUsage,
    /// Wall time of the run.
    pub seconds: f64,
    /// What the user was told, one line each.
    pub notes: Vec<String>,
}

/// A run, before it starts.
pub struct Job {
    pub settings: Settings,
    pub issue: Issue,
    pub place: RepositoryLocation,
    pub approach: Variant,
    /// What it is given beyond the issue.
    pub given: Given,
    pub model: ModelName,
    /// Folder for the results.
    pub out: PathBuf,
    /// What was recorded of a run that goes on.
    pub recorded: Option<RecordedRun>,
    /// A file that takes all traffic with the model.
    pub traffic: Option<PathBuf>,
    /// A further place that keeps the events.
    pub sink: Option<Box<dyn EventSink>>,
    /// What calls of its model count against.
    pub quota: Option<Arc<dyn Quota>>,
    /// Store of environments that other machines use too.
    pub shared: Option<Arc<dyn SharedEnvironments>>,
    /// Ends the run as an interrupt of this process does, when it says `true`.
    pub stop: Option<StopSignal>,
    /// What the user should know beforehand.
    pub notes: Vec<String>,
}

/// What a run works with.
pub struct Workplace {
    /// The old code.
    pub source: Source,
    pub environment: Environment,
    /// In a sandbox of that environment.
    pub session: Session,
    pub model: Arc<dyn Model>,
    pub processor: ProcessorShare,
}

impl Job {
    /// A new run, that is given nothing beyond the issue.
    pub fn new(
        settings: Settings,
        issue: Issue,
        place: RepositoryLocation,
        approach: Variant,
        model: ModelName,
        out: PathBuf,
    ) -> Self {
        Job {
            settings,
            issue,
            place,
            approach,
            given: Given::default(),
            model,
            out,
            recorded: None,
            traffic: None,
            sink: None,
            quota: None,
            shared: None,
            stop: None,
            notes: Vec::new(),
        }
    }

    /// One that goes on with a run that was cut short; `approach` is the recorded one.
    pub fn resumed(
        recorded: RecordedRun,
        mut settings: Settings,
        approach: Variant,
    ) -> Result<Self> {
        let out = recorded.folder.path().to_owned();
        settings.run.out = Some(out.clone());
        let place = RepositoryLocation {
            location: recorded.settings.repository.clone(),
            revision: recorded.started.commit.clone(),
        };
        let issue = recorded.started.issue.clone();
        let model = ModelName::parse(&recorded.started.model)?;
        Ok(Job {
            notes: settings.notes.clone(),
            given: recorded.settings.given.clone(),
            recorded: Some(recorded),
            ..Job::new(settings, issue, place, approach, model, out)
        })
    }

    /// Where a commit was asked for, comments that are newer than it stay out of a new run.
    fn forget_newer_comments(&mut self, source: &Source, progress: &dyn Progress) {
        let date = source.date.as_deref().and_then(|date| date.parse().ok());
        let (Some(_), None, Some(date)) = (&self.place.revision, &self.recorded, date) else {
            return;
        };
        let known = self.issue.notes.len();
        self.issue.drop_comments_newer_than_code(date);
        for note in &self.issue.notes[known..] {
            progress.note(note);
            self.notes.push(note.clone());
        }
    }

    /// From the old code to the results on disk. Boxed, like [`Job::work_in`]: crates that await it would compile it again.
    pub fn work(
        self,
        progress: Arc<dyn Progress>,
    ) -> BoxFuture<'static, Result<(Record, PathBuf)>> {
        Box::pin(self.start_and_work(progress))
    }

    async fn start_and_work(mut self, progress: Arc<dyn Progress>) -> Result<(Record, PathBuf)> {
        for note in &self.notes {
            progress.note(note);
        }
        let args = ModelArgs {
            record: self.traffic.take(),
            quota: self.quota.take(),
        };
        let model = setup::model(&self.settings, &self.model, args, progress.clone())?;
        let setup = Setup::new(&self.settings, self.shared.take(), progress.clone())
            .await?
            .with_preferred_python(self.issue.named_python())
            .with_source_check(self.source_check())
            .with_wanted_lines(self.wanted_lines());
        if self.recorded.is_none() {
            RunFolder::check_free(&self.out)?;
        }
        let digest = self
            .recorded
            .as_ref()
            .map(|run| run.started.digest.as_str());
        // What was started ends where the future is dropped.
        let (source, environment, session) = tokio::select! {
            started = setup.start_session(&self.place, digest) => started?,
            () = ended(self.stop.clone()) => {
                return Err(Error::interrupted("finish the run: it was cancelled"));
            }
        };
        if self.recorded.is_none() {
            let notes = match self.given.notes(&source) {
                Ok(notes) => notes,
                Err(error) => {
                    session.close().await?;
                    return Err(error);
                }
            };
            for note in notes {
                progress.note(&note);
                self.notes.push(note);
            }
        }
        let workplace = Workplace {
            source,
            environment,
            session,
            model,
            processor: ProcessorShare::default(),
        };
        self.work_in(workplace, progress).await
    }

    /// Does the old code fit what is given?
    fn source_check(&self) -> SourceCheck {
        let (given, options) = (self.given.clone(), self.approach.options().clone());
        Box::new(move |source| {
            given.check_source(source, &options)?;
            given.check_test_paths(source)
        })
    }

    fn wanted_lines(&self) -> WantedLines {
        let targets = self.given.lines.clone();
        Box::new(move |source| {
            if targets.is_empty() {
                return Ok(BTreeMap::new());
            }
            let ranges = lines::resolve(&source.tree()?, &targets)?;
            Ok(lines::by_file(&ranges))
        })
    }

    /// Returns the event with which this part of the trajectory starts.
    fn first_event(&self, source: &Source) -> Event {
        let at = jiff::Timestamp::now().to_string();
        if self.recorded.is_some() {
            return Event::Resumed { at };
        }
        let settings = RecordedSettings::new(&self.settings, &self.place, &self.given);
        let tools = self.approach.approach.tools();
        Event::Started(Box::new(Started {
            format: FORMAT,
            at,
            testwright: env!("CARGO_PKG_VERSION").to_owned(),
            approach: self.approach.name(),
            model: self.model.to_string(),
            issue: self.issue.clone(),
            repository: source.name.clone(),
            commit: source.commit.clone(),
            digest: source.digest.clone(),
            settings: serde_json::to_value(settings).unwrap_or_default(),
            tools: tools.iter().map(|tool| tool.spec()).collect(),
        }))
    }

    /// Opens the run's folder and writes the event to it; also returns the events that were recorded before.
    fn open_folder(&mut self, first: &Event) -> Result<(RunFolder, Vec<Event>)> {
        let (mut folder, events) = match self.recorded.take() {
            Some(run) => (run.folder, run.events),
            None if self.settings.run.out.is_some() => (RunFolder::create(&self.out)?, Vec::new()),
            None => (RunFolder::create_unnamed(&self.out)?, Vec::new()),
        };
        if let Some(sink) = self.sink.take() {
            folder.keep_in(sink);
        }
        folder.append(first)?;
        Ok((folder, events))
    }

    /// From a sandbox of the old code to the results on disk.
    pub fn work_in(
        self,
        workplace: Workplace,
        progress: Arc<dyn Progress>,
    ) -> BoxFuture<'static, Result<(Record, PathBuf)>> {
        Box::pin(self.work_at(workplace, progress))
    }

    async fn work_at(
        mut self,
        workplace: Workplace,
        progress: Arc<dyn Progress>,
    ) -> Result<(Record, PathBuf)> {
        let Workplace {
            source,
            environment,
            session,
            model,
            processor,
        } = workplace;
        self.forget_newer_comments(&source, progress.as_ref());
        let first = self.first_event(&source);
        // The sandbox must not outlive a run whose folder cannot be written.
        let (folder, events) = match self.open_folder(&first) {
            Ok(opened) => opened,
            Err(error) => {
                session.close().await?;
                return Err(error);
            }
        };
        let facts = serde_json::to_value(session.info()).unwrap_or_default();
        let mut notes = self.notes;
        notes.extend(source.notes.clone());
        notes.extend(environment.notes.clone());
        let mut for_model = environment.notes.clone();
        if let Some(note) = self.issue.note_on_python(&environment.python_version) {
            progress.note(&note);
            notes.push(note.clone());
            for_model.push(note);
        }
        let limits = limits(&self.settings);
        let context = ApproachContext {
            max_steps: limits.steps.unwrap_or(u32::MAX),
            // What a recipe or a build said may hold escapes.
            notes: (for_model.iter())
                .map(|note| visible(note).into_owned())
                .collect(),
            options: self.approach.options().clone(),
            given: self.given.clone(),
            context_window: self.settings.model.context_window,
        };
        let mut run = Run::new(RunParts {
            issue: self.issue.clone(),
            source: source.clone(),
            model,
            session,
            folder,
            budget: Budget::new(limits),
            replay: Replay::resume(events),
            progress: progress.clone(),
            max_tokens: self.settings.model.max_tokens,
            temperature: self.settings.model.temperature,
            processor,
        });
        let outcome = tokio::select! {
            outcome = self.approach.approach.run(&mut run, &context) => outcome,
            () = setup::interrupted() => Outcome::Interrupted,
            () = ended(self.stop) => Outcome::Interrupted,
        };
        let outcome = match self.settings.run.min_confidence {
            Some(minimum) => outcome.with_minimum(minimum),
            None => outcome,
        };
        let (budget, folder, _) = run.finish(&outcome).await;
        let record = Record {
            testwright: env!("CARGO_PKG_VERSION").to_owned(),
            issue: serde_json::json!({ "title": self.issue.title, "origin": self.issue.origin }),
            repository: source.name,
            commit: source.commit,
            approach: self.approach.name(),
            model: self.model.to_string(),
            settings: self.settings.record(),
            given: self.given,
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

/// Ends when the run is to end.
async fn ended(stop: Option<StopSignal>) {
    match stop {
        Some(signal) => stopped(signal).await,
        None => std::future::pending().await,
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

/// Writes what a run leaves beside its trajectory.
pub fn write_results(folder: &RunFolder, record: &Record) -> Result<()> {
    write_outcome(folder, &record.outcome)?;
    Ok(folder.write_json("run.json", record)?)
}

/// The same, where there is no record.
pub fn write_outcome(folder: &RunFolder, outcome: &Outcome) -> Result<()> {
    if let Outcome::Accepted { patch, evidence } = outcome {
        folder.write("test.patch", patch.as_bytes())?;
        folder.write_json("evidence.json", evidence)?;
    }
    if let Outcome::Refused { patch, .. } = outcome {
        folder.write("refused.patch", patch.as_bytes())?;
    }
    if let Outcome::Withheld {
        patch, evidence, ..
    } = outcome
    {
        folder.write("withheld.patch", patch.as_bytes())?;
        if let Some(evidence) = evidence {
            folder.write_json("evidence.json", evidence)?;
        }
    }
    if let Outcome::Abstained { .. } = outcome {
        folder.write_json("evidence.json", outcome)?;
    }
    Ok(())
}
