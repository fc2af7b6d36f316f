//! Makes the runs of comparisons, on environments as the grader makes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use testwright_evals::harness::Harness;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;
use tokio::sync::Mutex;

use super::comparison::{CellRequest, CellSettings};
use crate::agent::{ProcessorShare, Silent};
use crate::compare::cell_run;
use crate::error::{Error, Result};
use crate::job::{Job, Record};
use crate::model::quota::Quota;
use crate::settings::Settings;
use crate::setup::{self, HarnessArgs, ModelArgs};

/// What tells graders apart: where git comes from, and the seconds of a run of tests.
type Key = (String, u64);

pub struct CellWorker {
    settings: Settings,
    folder: PathBuf,
    harnesses: Mutex<BTreeMap<Key, Arc<Harness>>>,
}

/// A run on code that is made ready.
pub struct PreparedCell {
    pub job: Job,
    harness: Arc<Harness>,
    code: (Source, Environment),
}

impl CellWorker {
    pub fn new(settings: &Settings, folder: &Path) -> Self {
        CellWorker {
            settings: settings.clone(),
            folder: folder.to_owned(),
            harnesses: Mutex::default(),
        }
    }

    pub async fn prepare(&self, request: &CellRequest, out: PathBuf) -> Result<PreparedCell> {
        let harness = self.harness(&request.shared).await?;
        let code = harness.old_code(&request.task.instance, &|_| {}).await;
        let code = code.map_err(|failed| {
            Error::infrastructure("make the code ready")
                .cause(format!("{}: {}", failed.stage, failed.cause))
        })?;
        let settings = request.shared.settings(&self.settings);
        let job = request.task.job(&harness, &settings, &code.0, &out)?;
        Ok(PreparedCell { job, harness, code })
    }

    async fn harness(&self, shared: &CellSettings) -> Result<Arc<Harness>> {
        let key = (shared.repositories.clone(), shared.test_seconds);
        let mut harnesses = self.harnesses.lock().await;
        if let Some(harness) = harnesses.get(&key) {
            return Ok(harness.clone());
        }
        let args = HarnessArgs {
            repositories: shared.repositories.clone(),
            test_time: Duration::from_secs(shared.test_seconds),
            out: self.folder.join("graded"),
        };
        let (harness, _) = setup::harness(&self.settings, args).await?;
        let harness = Arc::new(harness);
        harnesses.insert(key, harness.clone());
        Ok(harness)
    }
}

impl PreparedCell {
    pub async fn work(self, quota: Arc<dyn Quota>) -> Result<Record> {
        let progress = Arc::new(Silent);
        let args = ModelArgs {
            record: None,
            quota: Some(quota),
        };
        let model = setup::model(&self.job.settings, &self.job.model, args, progress.clone())?;
        let processor = ProcessorShare::default();
        cell_run::work(
            self.job,
            &self.harness,
            &self.code,
            model,
            processor,
            progress,
        )
        .await
    }
}
