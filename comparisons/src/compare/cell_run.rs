//! Makes one run of a comparison on prepared code, in this process or on a worker.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use testwright_evals::Instance;
use testwright_evals::harness::Harness;
use testwright_evals::result::Infrastructure;
use testwright_sandboxes::coverage;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;
use tokio::sync::Semaphore;

use testwright_agent::agent::{CpuPermit, Outcome, Progress};
use testwright_agent::approaches::Variant;
use testwright_agent::approaches::extra_inputs::{ExtraInputs, lines};
use testwright_agent::issues;
use testwright_agent::job::{PreparedRun, Record, RecordedRun, RunJob};
use testwright_agent::session::{Session, SessionSettings, WantedCoverage};
use testwright_agent::setup::{self, RepositoryLocation};
use testwright_agent::trajectory::{Event, RunFolder};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Settings;
use testwright_models::{Model, ModelName};

/// Task of one run of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellTask {
    /// The instance, without golden patches.
    pub instance: Instance,
    /// The approach, with its options.
    pub approach: String,
    /// The model, as named in the settings.
    pub model: String,
    /// Extra inputs for the system, in addition to the issue.
    pub extra_inputs: ExtraInputs,
}

impl CellTask {
    /// Returns the task of one run. Golden patches, test names, comments and unknown fields of the instance are
    /// removed.
    pub fn new(
        instance: &Instance,
        approach: &str,
        model: &str,
        extra_inputs: ExtraInputs,
    ) -> Self {
        CellTask {
            instance: Instance {
                patch: None,
                test_patch: None,
                fail_to_pass: None,
                pass_to_pass: None,
                hints_text: None,
                other: serde_json::Map::new(),
                ..instance.clone()
            },
            approach: approach.to_owned(),
            model: model.to_owned(),
            extra_inputs,
        }
    }

    /// Returns the job for this folder: a new run, or one that was interrupted there.
    ///
    /// # Errors
    ///
    /// Fails if the model or the issue is invalid, or an interrupted run cannot be resumed.
    pub fn job(
        &self,
        approach: Variant,
        harness: &Harness,
        settings: &Settings,
        source: &Source,
        out: &Path,
    ) -> Result<RunJob> {
        let mut settings = settings.clone();
        settings.run.out = Some(out.to_owned());
        if let Some(recorded) = interrupted_run(out, source)? {
            return RunJob::resumed(recorded, settings, approach);
        }
        let instance = &self.instance;
        let issue = issues::of_text(&instance.problem_statement, &instance.instance_id)?;
        let place = RepositoryLocation {
            location: harness.location(&instance.repo),
            revision: Some(instance.base_commit.clone()),
        };
        let (model, out) = (ModelName::parse(&self.model)?, out.to_owned());
        Ok(RunJob {
            extra_inputs: self.extra_inputs.clone(),
            ..RunJob::new(settings, issue, place, approach, model, out)
        })
    }
}

/// Opens the run that was interrupted in this folder, if there is one.
///
/// # Errors
///
/// Fails if the recording cannot be read, or was made with different code.
pub fn interrupted_run(out: &Path, source: &Source) -> Result<Option<RecordedRun>> {
    if !has_begun(out)? {
        return Ok(None);
    }
    let recorded = RecordedRun::open(out)?;
    if recorded.started.digest != source.digest {
        return Err(Error::usage(format!("resume {}", out.display()))
            .cause("it was recorded with different code")
            .hint("delete its folder to start over"));
    }
    Ok(Some(recorded))
}

/// Executes a job in its own sandbox. The processor is held while the sandbox starts and while tools run.
///
/// # Errors
///
/// Fails if the extra inputs do not match the code, the sandbox cannot start, or the run cannot be recorded.
pub async fn execute(
    job: RunJob,
    harness: &Harness,
    (source, environment): &(Source, Environment),
    model: Arc<dyn Model>,
    mut processor: CpuPermit,
    progress: Arc<dyn Progress>,
) -> Result<Record> {
    // An input that does not match the code is an infrastructure failure, so the other runs continue.
    let fits = job
        .extra_inputs
        .check_source(source, job.approach.options());
    fits.map_err(|error| Error {
        kind: Kind::Infrastructure,
        ..error.while_doing("use the extra inputs")
    })?;
    let coverage_request = wanted_coverage(&job.extra_inputs, harness, source, environment).await?;
    let settings = SessionSettings {
        limits: job.settings.limits.sandbox(),
        test_seconds: job.settings.limits.test_seconds,
        // Leave the other processors to other runs.
        processors: Some(1),
        run: harness.purpose.clone(),
        wanted: coverage_request,
    };
    processor.acquire().await;
    let session = Session::start(harness.backend.clone(), environment, &settings).await?;
    processor.release();
    let workplace = PreparedRun {
        source: source.clone(),
        environment: environment.clone(),
        session,
        model,
        processor,
        environment_repair: None,
    };
    let (record, _) = job.execute_in(workplace, progress).await?;
    Ok(record)
}

/// Prepares the coverage measurement if tests for given lines are requested.
async fn wanted_coverage(
    extra_inputs: &ExtraInputs,
    harness: &Harness,
    source: &Source,
    environment: &Environment,
) -> Result<Option<WantedCoverage>> {
    if extra_inputs.lines.is_empty() {
        return Ok(None);
    }
    let ranges = lines::resolve(&source.tree()?, &extra_inputs.lines)?;
    let package = coverage::package(&environment.python_version, &harness.build).await?;
    Ok(Some(WantedCoverage {
        package,
        lines: lines::by_file(&ranges),
    }))
}

/// The code and the environment of runs, or the outcome of each run if they are not available.
pub(crate) type PreparedCode = std::result::Result<(Source, Environment), Outcome>;

/// Waits for a processor, then prepares the code of runs.
pub(crate) async fn prepare_code(
    processors: &Semaphore,
    code: impl Future<Output = std::result::Result<(Source, Environment), Box<Infrastructure>>>,
) -> PreparedCode {
    // The semaphore is never closed.
    let _processor = processors.acquire().await.ok();
    tokio::select! {
        code = code => code.map_err(|failed| Outcome::Infrastructure {
            message: failed.to_string(),
            hint: None,
            shortage: failed.shortage,
        }),
        () = setup::interrupted() => Err(Outcome::Interrupted),
    }
}

/// Makes or resumes a run, unless it has ended, and returns its outcome.
pub(crate) async fn run_unless_ended(
    out: &Path,
    run: impl Future<Output = Result<Outcome>>,
) -> Result<Outcome> {
    if trajectory(out).is_file() {
        let mut events = RunFolder::read(out).map_err(Error::from)?;
        if let Some(Event::Ended { outcome }) = events.pop() {
            return Ok(outcome);
        }
    }
    run.await
}

/// Returns whether a run has recorded events. An empty trajectory is removed.
fn has_begun(out: &Path) -> Result<bool> {
    let path = trajectory(out);
    if !path.is_file() {
        return Ok(false);
    }
    if !RunFolder::read(out).map_err(Error::from)?.is_empty() {
        return Ok(true);
    }
    let removed = std::fs::remove_file(&path);
    removed.map_err(|error| Error::io(format!("remove {}", path.display()), &error))?;
    Ok(false)
}

/// Returns the path of the file with the run's events.
pub fn trajectory(out: &Path) -> PathBuf {
    out.join("trajectory.jsonl")
}
