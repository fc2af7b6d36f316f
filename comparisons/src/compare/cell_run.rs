//! One run of a comparison on code that is made ready, wherever it is made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use testwright_evals::Instance;
use testwright_evals::harness::Harness;
use testwright_sandboxes::coverage;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;

use testwright_agent::agent::{Outcome, ProcessorShare, Progress};
use testwright_agent::approaches::Variant;
use testwright_agent::approaches::given::{Given, lines};
use testwright_agent::issues;
use testwright_agent::job::{Job, Record, RecordedRun, Workplace};
use testwright_agent::session::{Session, SessionSettings, WantedCoverage};
use testwright_agent::setup::RepositoryLocation;
use testwright_agent::trajectory::{Event, RunFolder};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Settings;
use testwright_models::{Model, ModelName};

/// What a run of a comparison works on and with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellTask {
    /// Without golden patches.
    pub instance: Instance,
    /// With its options.
    pub approach: String,
    pub model: String,
    pub given: Given,
}

impl CellTask {
    pub fn new(instance: &Instance, approach: &str, model: &str, given: Given) -> Self {
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
            given,
        }
    }

    /// A run in this folder: a new one, or the one that was cut short there.
    pub fn job(
        &self,
        harness: &Harness,
        settings: &Settings,
        source: &Source,
        out: &Path,
    ) -> Result<Job> {
        let approach = Variant::parse(&self.approach)?;
        let mut settings = settings.clone();
        settings.run.out = Some(out.to_owned());
        if let Some(recorded) = begun(out, source)? {
            return Job::resumed(recorded, settings, approach);
        }
        let instance = &self.instance;
        let issue = issues::of_text(&instance.problem_statement, &instance.instance_id)?;
        let place = RepositoryLocation {
            location: harness.location(&instance.repo),
            revision: Some(instance.base_commit.clone()),
        };
        let (model, out) = (ModelName::parse(&self.model)?, out.to_owned());
        Ok(Job {
            given: self.given.clone(),
            ..Job::new(settings, issue, place, approach, model, out)
        })
    }
}

/// The run that was cut short in this folder.
pub fn begun(out: &Path, source: &Source) -> Result<Option<RecordedRun>> {
    if !has_begun(out)? {
        return Ok(None);
    }
    let recorded = RecordedRun::open(out)?;
    if recorded.started.digest != source.digest {
        return Err(Error::usage(format!("go on with {}", out.display()))
            .cause("it was recorded on other code")
            .hint("remove its folder to begin it anew"));
    }
    Ok(Some(recorded))
}

/// From a job to its record, in a sandbox of its own; the share is held while the sandbox starts and while tools work.
pub async fn work(
    job: Job,
    harness: &Harness,
    (source, environment): &(Source, Environment),
    model: Arc<dyn Model>,
    mut processor: ProcessorShare,
    progress: Arc<dyn Progress>,
) -> Result<Record> {
    // It cannot be run as it is meant, which is no system's failure; others go on.
    let fits = job.given.check_source(source, job.approach.options());
    fits.map_err(|error| Error {
        kind: Kind::Infrastructure,
        ..error.while_doing("run it on what it is to be given")
    })?;
    let wanted = wanted_coverage(&job.given, harness, source, environment).await?;
    let settings = SessionSettings {
        limits: job.settings.limits.sandbox(),
        test_seconds: job.settings.limits.test_seconds,
        // The others are for other runs.
        processors: Some(1),
        run: harness.purpose.clone(),
        wanted,
    };
    processor.acquire().await;
    let session = Session::start(harness.backend.clone(), environment, &settings).await?;
    processor.release();
    let workplace = Workplace {
        source: source.clone(),
        environment: environment.clone(),
        session,
        model,
        processor,
    };
    let (record, _) = job.work_in(workplace, progress).await?;
    Ok(record)
}

/// Where tests are wanted for lines.
async fn wanted_coverage(
    given: &Given,
    harness: &Harness,
    source: &Source,
    environment: &Environment,
) -> Result<Option<WantedCoverage>> {
    if given.lines.is_empty() {
        return Ok(None);
    }
    let ranges = lines::resolve(&source.tree()?, &given.lines)?;
    let package = coverage::package(&environment.python_version, &harness.build).await?;
    Ok(Some(WantedCoverage {
        package,
        lines: lines::by_file(&ranges),
    }))
}

/// How a run ended before; `None` where it goes on.
pub fn ended(out: &Path) -> Result<Option<Outcome>> {
    if !trajectory(out).is_file() {
        return Ok(None);
    }
    let events = RunFolder::read(out).map_err(Error::from)?;
    Ok(match events.last() {
        Some(Event::Ended { outcome }) => Some(outcome.clone()),
        _ => None,
    })
}

/// A run that was cut short before its first line has not.
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

/// The file with its events.
pub fn trajectory(out: &Path) -> PathBuf {
    out.join("trajectory.jsonl")
}
