//! Makes one run of a comparison, new or resumed, in this process or on the workers of a server.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use testwright_evals::harness::Harness;
use testwright_evals::{Dataset, Instance};
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;
use tokio::sync::Semaphore;

use super::cell_run::{self, CellTask};
use super::given::Inputs;
use super::recorded_model::RecordedModel;
use super::{Plan, RunRecord, RunSpec, System};
use super::{recorded_model, trajectory_page};
use testwright_agent::agent::{CpuPermit, Outcome, Progress};
use testwright_agent::approaches::Variant;
use testwright_agent::approaches::extra_inputs::ExtraInputs;
use testwright_agent::setup;
use testwright_agent::trajectory::RunFolder;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::spending_limit::SpendingLimit;
use testwright_models::{Model, ModelName};

/// Makes runs on other machines.
#[async_trait]
pub trait RemoteRuns: Send + Sync {
    /// Makes the run unless it exists, and copies its files to the folder.
    async fn run(&self, cell: &RunSpec, task: CellTask, out: &Path) -> Result<Outcome>;

    /// Returns the total cost of all runs so far, including failed calls; `None` if no model was called.
    async fn dollars(&self) -> Result<Option<f64>>;
}

/// Settings of a comparison.
pub struct Schedule<'a> {
    /// The plan with the runs to make.
    pub plan: &'a Plan,
    /// Dataset with the instances of the plan.
    pub dataset: &'a Dataset,
    /// Settings of the runs.
    pub settings: &'a Settings,
    /// Harness that prepares the environments.
    pub harness: &'a Harness,
    /// Folder of the comparison, which stores the runs.
    pub folder: &'a Path,
    /// Maximum cost of all runs together, in dollars.
    pub max_dollars: Option<f64>,
    /// Number of processors for tools.
    pub workers: usize,
    /// Maximum concurrent runs, including those that wait for their models.
    pub runs_at_once: usize,
    /// Folder of a recorded comparison to replay; `None` calls models.
    pub recording: Option<&'a Path>,
    /// Extra inputs of the systems.
    pub inputs: &'a Inputs,
    /// Makes the runs on other machines, if set.
    pub remote: Option<&'a dyn RemoteRuns>,
    /// Whether the approaches of the plan may be programs to run, as only the user of this machine may choose.
    pub allows_commands: bool,
}

/// Settings and state shared by all runs.
pub(super) struct RunContext<'a> {
    pub schedule: &'a Schedule<'a>,
    pub ceiling: Option<Arc<SpendingLimit>>,
    pub processors: Arc<Semaphore>,
}

impl RunContext<'_> {
    /// Makes a run in this process and returns its record.
    pub(super) async fn run(
        &self,
        cell: &RunSpec,
        instance: &Instance,
        code: &(Source, Environment),
        progress: Arc<dyn Progress>,
    ) -> Result<(RunRecord, Outcome)> {
        let out = self.schedule.folder.join(cell.folder());
        let run = async {
            let (task, approach) = (self.task(cell, instance)?, self.approach(cell)?);
            let (harness, settings) = (self.schedule.harness, self.schedule.settings);
            let job = task.job(approach, harness, settings, &code.0, &out)?;
            let model = self.model(cell, progress.clone())?;
            let processor = CpuPermit::new(self.processors.clone());
            let made = cell_run::execute(job, harness, code, model, processor, progress);
            Ok(made.await?.outcome)
        };
        record(cell, &out, cell_run::run_unless_ended(&out, run).await?)
    }

    /// Makes a run on another machine and returns its record.
    pub(super) async fn run_remotely(
        &self,
        cell: &RunSpec,
        instance: &Instance,
        remote: &dyn RemoteRuns,
    ) -> Result<(RunRecord, Outcome)> {
        let out = self.schedule.folder.join(cell.folder());
        let run = async { remote.run(cell, self.task(cell, instance)?, &out).await };
        record(cell, &out, cell_run::run_unless_ended(&out, run).await?)
    }

    fn task(&self, cell: &RunSpec, instance: &Instance) -> Result<CellTask> {
        let extra_inputs = self.given(cell, &self.approach(cell)?)?;
        let System {
            approach, model, ..
        } = &cell.system;
        Ok(CellTask::new(instance, approach, model, extra_inputs))
    }

    fn approach(&self, cell: &RunSpec) -> Result<Variant> {
        match self.schedule.allows_commands {
            true => Variant::parse_with_commands(&cell.system.approach),
            false => Variant::parse(&cell.system.approach),
        }
    }

    /// Returns the extra inputs; a replay uses the recorded ones.
    fn given(&self, cell: &RunSpec, approach: &Variant) -> Result<ExtraInputs> {
        if let Some(recording) = self.schedule.recording {
            return recorded_model::recorded_inputs(&recording.join(cell.folder()));
        }
        let inputs = self.schedule.inputs.get(&cell.instance);
        let extra_inputs = inputs.map(|inputs| inputs.given(approach.options()));
        Ok(extra_inputs.unwrap_or_default())
    }

    fn model(&self, cell: &RunSpec, progress: Arc<dyn Progress>) -> Result<Arc<dyn Model>> {
        let name = &cell.system.model;
        if let Some(recording) = self.schedule.recording {
            let folder = recording.join(cell.folder());
            return Ok(Arc::new(RecordedModel::open(&folder, name)?));
        }
        let (name, ceiling) = (ModelName::parse(name)?, self.ceiling.clone());
        setup::model(
            self.schedule.settings,
            &name,
            None,
            ceiling.map(|it| it as _),
            progress,
        )
    }
}

/// Returns the record of a run that has ended.
fn record(cell: &RunSpec, out: &Path, outcome: Outcome) -> Result<(RunRecord, Outcome)> {
    let events = match cell_run::trajectory(out).is_file() {
        true => RunFolder::read(out).map_err(Error::from)?,
        // The run ended before its first step.
        false => Vec::new(),
    };
    trajectory_page::write(out, &cell.name(), &events, &outcome)?;
    Ok((RunRecord::from_events(cell, &events, &outcome), outcome))
}
