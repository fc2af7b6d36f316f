//! A run from the old code to the results on disk, for any caller.

mod check_model;
mod issue_notes;
mod plan_line;
mod recorded_run;
mod results;
mod revision;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_evals::machine::COMMIT;
use testwright_sandboxes::environment::{Environment, SharedEnvironments};
use testwright_sandboxes::repository::Source;
use testwright_tools::visible;

use crate::agent::{Budget, CpuPermit, Limits, Outcome, Progress, Replay, Run, RunParts, RunUsage};
use crate::approaches::extra_inputs::{ExtraInputs, lines};
use crate::approaches::{ApproachContext, ModelKind, Variant};
use crate::environment_repair::RepairModel;
use crate::issues::Issue;
use crate::session::Session;
use crate::setup::{self, RepositoryLocation, Setup, SourceCheck, WantedLines};
use crate::trajectory::event::FORMAT;
use crate::trajectory::{EnvironmentRepair, Event, EventSink, RunFolder, Started};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_config::stop_signal::{StopSignal, stopped};
use testwright_models::price::{check_limit, price_of};
use testwright_models::quota::Quota;
use testwright_models::{Model, ModelName};

pub use check_model::{CheckModel, CheckPlace};
pub use recorded_run::{RecordedRun, RecordedSettings, recorded_outcome};
pub use results::{RESULT_FILES, write_outcome, write_results};

/// File with the difference between a revised test and the test before, in the folder of the run.
pub const REVISION_FILE: &str = "revision.diff";

/// The contents of `run.json`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of testwright.
    pub testwright: String,
    /// Commit from which testwright was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testwright_commit: Option<String>,
    /// Title and origin of the issue.
    pub issue: Value,
    /// Repository as `owner/name`, or the name of a folder.
    pub repository: String,
    /// Commit of the old code.
    pub commit: Option<String>,
    /// Name of the approach.
    pub approach: String,
    /// Name of the model.
    pub model: String,
    /// Settings in force, without secrets.
    pub settings: Value,
    /// Extra inputs of the approach beyond the issue, as its options require.
    #[serde(default, skip_serializing_if = "ExtraInputs::is_empty")]
    pub extra_inputs: ExtraInputs,
    /// Isolation in force, and paths in the sandbox.
    pub sandbox: Value,
    /// Recipe, Python version and packages, log of the build, and whether the environment came from the
    /// cache.
    pub environment: Value,
    /// Outcome of the run.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Model calls, tool calls, tokens and cost.
    pub usage: RunUsage,
    /// Wall time of the run in seconds.
    pub seconds: f64,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
}

/// A run before it starts.
pub struct RunJob {
    /// Settings in force.
    pub settings: Settings,
    /// Issue to write a test for.
    pub issue: Issue,
    /// Location of the old code.
    pub place: RepositoryLocation,
    /// Approach, with its options.
    pub approach: Variant,
    /// Extra inputs beyond the issue.
    pub extra_inputs: ExtraInputs,
    /// Name of the model.
    pub model: ModelName,
    /// Folder for the results.
    pub out: PathBuf,
    /// Path of the old code in its repository, with a `/` at its end, if the patch should be relative to the
    /// repository's root.
    pub patch_prefix: String,
    /// Recording of the run to resume.
    pub recorded: Option<RecordedRun>,
    /// File for all traffic with the model.
    pub traffic: Option<PathBuf>,
    /// Additional store for the events.
    pub sink: Option<Box<dyn EventSink>>,
    /// Quota of the model's calls.
    pub quota: Option<Arc<dyn Quota>>,
    /// Store of environments that other machines also use.
    pub shared: Option<Arc<dyn SharedEnvironments>>,
    /// Signal that ends the run, like an interrupt of this process.
    pub stop: Option<StopSignal>,
    /// Notes for the user before the run.
    pub notes: Vec<String>,
}

/// A prepared sandbox, with all that a run needs.
pub struct PreparedRun {
    /// Old code.
    pub source: Source,
    /// Environment of the old code.
    pub environment: Environment,
    /// Session in a sandbox of that environment.
    pub session: Session,
    /// Model that is asked.
    pub model: Arc<dyn Model>,
    /// Share of the processors.
    pub processor: CpuPermit,
    /// Repair of the environment, if there was one.
    pub environment_repair: Option<EnvironmentRepair>,
}

impl RunJob {
    /// Creates a new run without extra inputs.
    pub fn new(
        settings: Settings,
        issue: Issue,
        place: RepositoryLocation,
        approach: Variant,
        model: ModelName,
        out: PathBuf,
    ) -> Self {
        RunJob {
            settings,
            issue,
            place,
            approach,
            extra_inputs: ExtraInputs::default(),
            model,
            out,
            patch_prefix: String::new(),
            recorded: None,
            traffic: None,
            sink: None,
            quota: None,
            shared: None,
            stop: None,
            notes: Vec::new(),
        }
    }

    /// Creates a run that resumes an interrupted one; `approach` is the recorded one.
    ///
    /// # Errors
    ///
    /// Fails if the recorded name of the model is invalid, or if dollars are limited and it has no price.
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
        check_limit(&settings, &model)?;
        Ok(RunJob {
            notes: settings.notes.clone(),
            extra_inputs: recorded.settings.extra_inputs.clone(),
            recorded: Some(recorded),
            ..RunJob::new(settings, issue, place, approach, model, out)
        })
    }

    /// Drops the newer comments of a new run if a commit was given.
    fn forget_newer_comments(&mut self, source: &Source, progress: &dyn Progress) {
        let date = source.date.as_deref().and_then(|date| date.parse().ok());
        let is_new = self.recorded.is_none() && self.extra_inputs.revises.is_none();
        let (Some(_), true, Some(date)) = (&self.place.revision, is_new, date) else {
            return;
        };
        let note_count = self.issue.notes.len();
        self.issue.drop_comments_newer_than_code(date);
        for note in &self.issue.notes[note_count..] {
            progress.note(note);
            self.notes.push(note.clone());
        }
    }

    /// Runs from the old code to the results on disk. The future is boxed, as in [`RunJob::execute_in`], so that
    /// crates that await it do not compile it again.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot be started or its results cannot be written; other failures are outcomes.
    pub fn execute(
        self,
        progress: Arc<dyn Progress>,
    ) -> BoxFuture<'static, Result<(Record, PathBuf)>> {
        Box::pin(self.start_and_work(progress))
    }

    async fn start_and_work(mut self, progress: Arc<dyn Progress>) -> Result<(Record, PathBuf)> {
        if self.recorded.is_none() {
            self.notes
                .extend(self.extra_inputs.ignored_hint(&self.approach));
        }
        for note in &self.notes {
            progress.note(note);
        }
        let (record, quota) = (self.traffic.take(), self.quota.take());
        // A worker, which stores the events, has settings that its clients cannot change.
        let is_on_worker = self.sink.is_some();
        let of_settings = |error: Error| match is_on_worker {
            true => error.into_infrastructure(),
            false => error,
        };
        let model = setup::model(&self.settings, &self.model, record, quota, progress.clone())
            .map_err(of_settings)?;
        setup::check_service(&self.settings, &self.model)
            .await
            .map_err(of_settings)?;
        let recorded = self.recorded.as_ref().map(|run| &run.started);
        let recorded_repair = recorded.and_then(|started| started.environment_repair.as_ref());
        let mut setup = Setup::new(&self.settings, self.shared.take(), progress.clone())
            .await
            .map_err(of_settings)?
            .with_recorded_repair(recorded_repair)?
            .for_issue(Some(&self.issue));
        setup.repair_model = RepairModel::new(&self.settings, &self.model, model.clone());
        setup.paths = self.extra_inputs.paths().into_iter().collect();
        setup.source_check = Some(self.source_check());
        setup.wanted_lines = Some(self.wanted_lines());
        if self.recorded.is_none() {
            RunFolder::check_free(&self.out)?;
        }
        let digest = recorded.map(|started| started.digest.as_str());
        // Dropping the future stops whatever was started.
        let (source, environment, session) = tokio::select! {
            started = setup.start_session(&self.place, digest) => started?,
            () = ended(self.stop.clone()) => {
                return Err(Error::cancelled("the run was cancelled"));
            }
        };
        if self.recorded.is_none() {
            let notes = match self.extra_inputs.notes(&source) {
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
        let workplace = PreparedRun {
            source,
            environment,
            session,
            model,
            processor: CpuPermit::default(),
            environment_repair: setup.environment_repair().cloned(),
        };
        self.execute_in(workplace, progress).await
    }

    /// Returns a check that the extra inputs fit the old code.
    fn source_check(&self) -> SourceCheck {
        let (inputs, options) = (self.extra_inputs.clone(), self.approach.options().clone());
        Box::new(move |source| {
            inputs.check_source(source, &options)?;
            inputs.check_test_paths(source)
        })
    }

    fn wanted_lines(&self) -> WantedLines {
        let targets = self.extra_inputs.lines.clone();
        Box::new(move |source| {
            if targets.is_empty() {
                return Ok(BTreeMap::new());
            }
            let ranges = lines::resolve(&source.tree()?, &targets)?;
            Ok(lines::by_file(&ranges))
        })
    }

    /// Returns the event with which this part of the trajectory starts.
    fn first_event(&self, source: &Source, repair: Option<EnvironmentRepair>) -> Event {
        let at = jiff::Timestamp::now().to_string();
        if self.recorded.is_some() {
            return Event::Resumed { at };
        }
        let settings = RecordedSettings::new(&self.settings, &self.place, &self.extra_inputs);
        let tools = (self.approach.approach.tools)();
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
            environment_repair: repair,
        }))
    }

    /// Opens the run's folder and writes the event to it; also returns the events that were recorded before.
    fn open_folder(&mut self, first: &Event) -> Result<(RunFolder, Vec<Event>)> {
        let (mut folder, events) = match self.recorded.take() {
            Some(run) => (run.folder, run.events),
            None if self.settings.run.out.is_some() => (RunFolder::create(&self.out)?, Vec::new()),
            None => (RunFolder::create_in_default_folder(&self.out)?, Vec::new()),
        };
        if let Some(sink) = self.sink.take() {
            folder.keep_in(sink);
        }
        folder.append(first)?;
        Ok((folder, events))
    }

    /// Runs from a sandbox of the old code to the results on disk.
    ///
    /// # Errors
    ///
    /// Fails if the run's folder cannot be opened or written; other failures are outcomes.
    pub fn execute_in(
        self,
        workplace: PreparedRun,
        progress: Arc<dyn Progress>,
    ) -> BoxFuture<'static, Result<(Record, PathBuf)>> {
        Box::pin(self.work_at(workplace, progress))
    }

    async fn work_at(
        mut self,
        workplace: PreparedRun,
        progress: Arc<dyn Progress>,
    ) -> Result<(Record, PathBuf)> {
        let PreparedRun {
            source,
            environment,
            session,
            model,
            processor,
            environment_repair,
        } = workplace;
        self.forget_newer_comments(&source, progress.as_ref());
        let repair = match &self.recorded {
            Some(recorded) => recorded.started.environment_repair.clone(),
            None => environment_repair,
        };
        let first = self.first_event(&source, repair.clone());
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
        let is_new = |note: &&String| !source.notes.contains(note);
        notes.extend(environment.notes.iter().filter(is_new).cloned());
        let mut for_model = environment.notes.clone();
        for note in issue_notes::issue_notes(&self.issue, &source, &environment) {
            progress.note(&note);
            notes.push(note.clone());
            for_model.push(note);
        }
        let mut limits = Limits::of_settings(&self.settings);
        // A step is a call of a language model.
        if self.approach.approach.model != ModelKind::Language {
            limits.steps = None;
        }
        let context = ApproachContext {
            max_steps: limits.steps.unwrap_or(u32::MAX),
            // Notes of a recipe or a build may contain escape sequences.
            notes: (for_model.iter())
                .map(|note| visible(note).into_owned())
                .collect(),
            options: self.approach.options().clone(),
            extra_inputs: self.extra_inputs.clone(),
            context_window: self.settings.model.context_window,
            command: self.approach.command().cloned(),
            key_variable: self.settings.model.api_key_env.clone(),
        };
        let mut budget = Budget::new(limits);
        if let Some(price) = price_of(&self.settings, &self.model) {
            budget.set_prompt_price(price.prompt / 1e6);
        }
        if let Some(repair) = &repair {
            budget.record_repair(repair);
            folder.write("recipe.toml", repair.recipe.as_bytes())?;
        }
        let mut run = Run::new(RunParts {
            issue: (self.extra_inputs).add_wish(self.issue.clone(), &self.approach),
            source: source.clone(),
            model,
            session,
            folder,
            budget,
            replay: Replay::resume(events),
            progress: progress.clone(),
            max_tokens: self.settings.model.max_tokens,
            temperature: self.settings.model.temperature,
            processor,
        });
        let outcome = tokio::select! {
            outcome = (self.approach.approach.run)(&mut run, &context) => {
                outcome.unwrap_or_else(|outcome| outcome)
            }
            () = setup::interrupted() => Outcome::Interrupted,
            () = ended(self.stop) => Outcome::Interrupted,
        };
        let outcome = match self.settings.run.min_confidence {
            Some(minimum) => outcome.with_minimum(minimum),
            None => outcome,
        };
        // The earlier test has paths relative to the old code.
        let revision = revision::difference(&source, &self.extra_inputs, &outcome);
        let outcome = outcome.with_path_prefix(&self.patch_prefix);
        let (budget, folder, _) = run.finish(&outcome).await;
        let record = Record {
            testwright: env!("CARGO_PKG_VERSION").to_owned(),
            testwright_commit: COMMIT.map(str::to_owned),
            issue: serde_json::json!({ "title": self.issue.title, "origin": self.issue.origin }),
            repository: source.name,
            commit: source.commit,
            approach: self.approach.name(),
            model: self.model.to_string(),
            settings: self.settings.record(),
            extra_inputs: self.extra_inputs,
            sandbox: facts,
            environment: serde_json::to_value(&environment).unwrap_or_default(),
            exit_code: outcome.exit_code(),
            outcome,
            seconds: budget.elapsed().as_secs_f64(),
            usage: budget.spent,
            notes,
        };
        write_results(&folder, &record)?;
        if let Some(difference) = revision? {
            folder.write(REVISION_FILE, difference.as_bytes())?;
        }
        Ok((record, folder.path().to_owned()))
    }
}

/// Completes when the run should end.
async fn ended(stop: Option<StopSignal>) {
    match stop {
        Some(signal) => stopped(signal).await,
        None => std::future::pending().await,
    }
}
