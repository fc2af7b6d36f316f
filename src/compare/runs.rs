//! One run of a comparison: begun, or gone on with where it was cut short.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testwright_evals::Instance;
use testwright_evals::harness::Harness;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;
use tokio::sync::Semaphore;

use super::recorded_model::RecordedModel;
use super::trajectory_page;
use super::{Cell, RunRecord};
use crate::agent::{Outcome, ProcessorShare, Progress};
use crate::approaches::Variant;
use crate::error::{Error, Result};
use crate::issues;
use crate::job::{Job, RecordedRun, Workplace};
use crate::model::Model;
use crate::model::ceiling::Ceiling;
use crate::session::{Session, SessionSettings};
use crate::settings::Settings;
use crate::setup::{self, ModelArgs, RepositoryLocation};
use crate::trajectory::{Event, RunFolder};

/// What all runs share.
pub struct RunContext<'a> {
    pub settings: &'a Settings,
    pub harness: &'a Harness,
    /// Folder of the comparison.
    pub folder: &'a Path,
    pub ceiling: Option<Arc<Ceiling>>,
    pub processors: Arc<Semaphore>,
    /// A comparison whose replies are played again.
    pub recording: Option<&'a Path>,
}

impl RunContext<'_> {
    /// From the old code to the record of the run.
    pub async fn run(
        &self,
        cell: &Cell,
        instance: &Instance,
        code: &(Source, Environment),
        progress: Arc<dyn Progress>,
    ) -> Result<(RunRecord, Outcome)> {
        let out = self.folder.join(cell.folder());
        let outcome = match ended(&out)? {
            Some(outcome) => outcome,
            None => self.work(cell, instance, code, &out, progress).await?,
        };
        let events = RunFolder::read(&out).map_err(Error::from)?;
        let name = cell.name();
        trajectory_page::write(&out, &name, &events, &outcome)?;
        Ok((RunRecord::of(cell, &events, &outcome), outcome))
    }

    async fn work(
        &self,
        cell: &Cell,
        instance: &Instance,
        (source, environment): &(Source, Environment),
        out: &Path,
        progress: Arc<dyn Progress>,
    ) -> Result<Outcome> {
        let job = self.job(cell, instance, source, out)?;
        let model = self.model(cell, progress.clone())?;
        let settings = SessionSettings {
            limits: self.settings.limits.sandbox(),
            test_seconds: self.settings.limits.test_seconds,
            run: self.harness.purpose.clone(),
        };
        let mut processor = ProcessorShare::of(self.processors.clone());
        processor.acquire().await;
        let session = Session::start(self.harness.backend.clone(), environment, &settings).await?;
        processor.release();
        let workplace = Workplace {
            source: source.clone(),
            environment: environment.clone(),
            session,
            model,
            processor,
        };
        let (record, _) = job.work_in(workplace, progress).await?;
        Ok(record.outcome)
    }

    fn job(&self, cell: &Cell, instance: &Instance, source: &Source, out: &Path) -> Result<Job> {
        let approach = Variant::parse(&cell.system.approach)?;
        let mut settings = self.settings.clone();
        settings.run.out = Some(out.to_owned());
        if has_begun(out)? {
            let recorded = RecordedRun::open(out)?;
            if recorded.started.digest != source.digest {
                return Err(Error::usage(format!("go on with {}", out.display()))
                    .cause("it was recorded on other code")
                    .hint("remove its folder to begin it anew"));
            }
            return Ok(Job::resumed(recorded, settings, approach));
        }
        Ok(Job {
            issue: issues::of_text(&instance.problem_statement, &instance.instance_id)?,
            place: RepositoryLocation {
                location: self.harness.location(&instance.repo),
                revision: Some(instance.base_commit.clone()),
            },
            approach,
            model: cell.system.model.clone(),
            out: out.to_owned(),
            recorded: None,
            traffic: None,
            notes: Vec::new(),
            settings,
        })
    }

    fn model(&self, cell: &Cell, progress: Arc<dyn Progress>) -> Result<Arc<dyn Model>> {
        let name = &cell.system.model;
        if let Some(recording) = self.recording {
            let folder = recording.join(cell.folder());
            return Ok(Arc::new(RecordedModel::open(&folder, name)?));
        }
        let args = ModelArgs {
            record: None,
            ceiling: self.ceiling.clone(),
        };
        setup::model(self.settings, name, args, progress)
    }
}

/// How a run ended before; `None` where it goes on.
fn ended(out: &Path) -> Result<Option<Outcome>> {
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

fn trajectory(out: &Path) -> PathBuf {
    out.join("trajectory.jsonl")
}
