//! A run of a comparison, in an environment built by the grader.

use std::path::PathBuf;
use std::sync::Arc;

use testwright_evals::harness::Harness;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;

use super::comparison::CellRequest;
use super::harnesses::HarnessCache;
use testwright_agent::agent::{CpuPermit, NotesToLog};
use testwright_agent::approaches::Variant;
use testwright_agent::job::{Record, RunJob};
use testwright_agent::setup;
use testwright_comparisons::compare::cell_run;
use testwright_config::error::{Error, Kind, Result};
use testwright_models::quota::Quota;

/// A run whose code and environment are ready.
pub(crate) struct PreparedMatrixRun {
    pub job: RunJob,
    harness: Arc<Harness>,
    code: (Source, Environment),
}

impl PreparedMatrixRun {
    pub(crate) async fn prepare(
        harnesses: &HarnessCache,
        request: &CellRequest,
        out: PathBuf,
    ) -> Result<Self> {
        let shared = &request.shared;
        shared.check_model(&harnesses.settings, &request.task.approach)?;
        let harness = harnesses
            .get(&shared.repositories, shared.test_seconds)
            .await?;
        let code = harness.old_code(&request.task.instance, &|_| {}).await;
        let code = code.map_err(|failed| {
            let kind = failed
                .shortage
                .map_or(Kind::Infrastructure, Kind::Exhausted);
            Error::new(kind, "prepare the code").cause(failed)
        })?;
        let settings = shared.settings(&harnesses.settings);
        let approach = Variant::parse(&request.task.approach)?;
        let job = (request.task).job(approach, &harness, &settings, &code.0, &out)?;
        Ok(PreparedMatrixRun { job, harness, code })
    }

    pub(crate) async fn execute(self, quota: Arc<dyn Quota>) -> Result<Record> {
        let progress = Arc::new(NotesToLog);
        let (settings, name) = (&self.job.settings, &self.job.model);
        let model = setup::model(settings, name, None, Some(quota), progress.clone())?;
        let processor = CpuPermit::default();
        cell_run::execute(
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
