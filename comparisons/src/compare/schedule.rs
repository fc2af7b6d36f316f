//! Runs a comparison concurrently: while one run waits for its model, another uses the processor. Instances are sorted
//! as in the grader, so that cached environments are reused, and each environment is prepared once for all of its runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use testwright_evals::{Instance, harness};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;

use super::cell_run::{PreparedCode, prepare_code};
use super::run_record::{RunKey, RunsFile, open_runs, stored_runs};
use super::runs::{RunContext, Schedule};
use super::{Plan, RunRecord, RunSpec, RunStatus};
use crate::model_work::{MAX_FAILURES, ModelWork, SPENDING, open_ledger};
use crate::record_file::replace;
use testwright_agent::agent::{Outcome, Progress, StepView};
use testwright_agent::setup;
use testwright_config::error::{Error, Kind, Result};
use testwright_models::spending_limit::SpendingLimit;

/// Progress of a comparison, for display.
#[derive(Debug)]
pub enum Step<'s> {
    /// A step of an environment build has started.
    Building {
        /// Id of the instance.
        instance: &'s str,
        /// The step, in words.
        step: &'s str,
    },
    /// A run has reached its next step.
    Working {
        /// The run.
        cell: &'s RunSpec,
        /// Description of the step, in words.
        what: &'s str,
    },
    /// A run has ended.
    Ended {
        /// Record of the run.
        run: &'s RunRecord,
        /// Whether the run was made now; false if its record already existed.
        fresh: bool,
    },
    /// A run has a note for the user.
    Note {
        /// Text of the note, after the name of the run.
        text: &'s str,
    },
}

/// Progress callback, which several tasks call.
pub type StepListener = Arc<dyn Fn(&Step<'_>) + Send + Sync>;

/// Result of running a comparison.
#[derive(Debug)]
pub struct Summary {
    /// Records of the runs, in the order of the plan.
    pub runs: Vec<RunRecord>,
    /// Whether the comparison was interrupted before its last run.
    pub interrupted: bool,
    /// Number of runs that did not start, and the reason.
    pub skipped_runs: Option<(usize, String)>,
    /// Total cost including failed calls; `None` if no model has a price.
    pub dollars: Option<f64>,
}

impl Summary {
    /// Returns a summary of the existing runs in a folder.
    ///
    /// # Errors
    ///
    /// Fails if the runs cannot be read.
    pub fn of_folder(folder: &Path, plan: &Plan) -> Result<Self> {
        let mut runs = stored_runs(folder)?;
        let cells = plan.cells(plan.instances.iter().map(|i| i.id.as_str()));
        Ok(Summary {
            runs: cells
                .iter()
                .filter_map(|cell| runs.remove(&cell.key()))
                .collect(),
            interrupted: false,
            skipped_runs: None,
            dollars: None,
        })
    }
}

/// Data shared by the runs of a schedule.
struct Shared<'s> {
    context: RunContext<'s>,
    file: RunsFile,
    state: Arc<ModelWork>,
    /// Runs of the recording that is replayed.
    recorded: BTreeMap<RunKey, RunRecord>,
    /// Instances by id, with their prepared old code.
    instances: BTreeMap<&'s str, (&'s Instance, OnceCell<PreparedCode>)>,
    listener: StepListener,
}

impl Schedule<'_> {
    /// Makes all runs of the plan that have no record yet, and records them.
    ///
    /// # Errors
    ///
    /// Fails if a file in the folder cannot be read or written, or a run fails with a usage error. Infrastructure
    /// failures are recorded as runs.
    pub async fn run_plan(&self, listener: StepListener) -> Result<Summary> {
        let mut instances: Vec<&Instance> = self.dataset.instances.iter().collect();
        instances.sort_by_key(|i| (&i.repo, &i.version, &i.created_at, &i.instance_id));
        let cells = self
            .plan
            .cells(instances.iter().map(|i| i.instance_id.as_str()));
        let file = open_runs(self.folder)?;
        let ceiling = self.ceiling()?;
        let state = Arc::new(ModelWork::default());
        // Dropping the set aborts the task.
        let watch = watch_for_interrupt(&state);
        let instances = instances.into_iter();
        let shared = Shared {
            context: RunContext {
                schedule: self,
                ceiling: ceiling.clone(),
                processors: Arc::new(Semaphore::new(self.workers.max(1))),
            },
            file,
            state,
            recorded: match self.recording {
                Some(folder) => stored_runs(folder)?,
                None => BTreeMap::new(),
            },
            instances: instances
                .map(|i| (i.instance_id.as_str(), (i, OnceCell::new())))
                .collect(),
            listener,
        };
        let runs = cells.iter().map(|cell| shared.run_cell(cell));
        // The first failure drops the other runs, whose events are already on disk.
        let ended = futures::stream::iter(runs)
            .buffer_unordered(self.runs_at_once.max(1))
            .try_collect::<()>()
            .await;
        drop(watch);
        if let (Some(remote), Some(ceiling)) = (self.remote, &ceiling)
            && let Some(dollars) = remote.dollars().await?
        {
            ceiling.set_worker_spending(dollars)?;
        }
        let state = &shared.state;
        let interrupted = state.is_interrupted();
        if ended.is_err() || interrupted {
            // The build of an environment may have been interrupted.
            self.harness.backend.abandon().await?;
        }
        ended?;
        Ok(Summary {
            runs: shared.file.retain(cells.iter().map(RunSpec::key))?,
            interrupted,
            skipped_runs: state.skipped(),
            dollars: ceiling.map(|ceiling| ceiling.spent()),
        })
    }

    fn ceiling(&self) -> Result<Option<Arc<SpendingLimit>>> {
        let Some(recording) = self.recording else {
            return open_ledger(self.folder, self.max_dollars).map(Some);
        };
        // Keep the recorded costs of the calls.
        let (from, path) = (recording.join(SPENDING), self.folder.join(SPENDING));
        if from.is_file() && !path.exists() {
            let read = plain_file::read(&from, Links::Refuse, MAX_DOCUMENT);
            let copied = read.and_then(|spent| replace(&path, &spent));
            copied.map_err(|e| Error::io(format!("copy {}", from.display()), &e))?;
        }
        Ok(None)
    }
}

impl Shared<'_> {
    /// Makes and records the run of a cell, unless its record exists or it must not start.
    async fn run_cell(&self, cell: &RunSpec) -> Result<()> {
        let (file, state) = (&self.file, &self.state);
        let stored = file.get(&cell.key());
        if let Some(run) = stored.filter(|run| run.status != RunStatus::Infrastructure) {
            (self.listener)(&Step::Ended {
                run: &run,
                fresh: false,
            });
            return Ok(());
        }
        let recorded = self.recorded.get(&cell.key());
        if let Some(failed) = recorded.filter(|run| run.status == RunStatus::Infrastructure) {
            return file.add(failed.clone());
        }
        let (model, ceiling) = (&cell.system.model, self.context.ceiling.as_deref());
        let times = format!("in {MAX_FAILURES} runs");
        if state.is_interrupted() || state.skip_if_blocked(model, ceiling, &times) {
            return Ok(());
        }
        let (mut run, outcome) = match self.make_run(cell).await {
            Ok(Some(result)) => result,
            Ok(None) => return Ok(()),
            // The run was interrupted on the other machine.
            Err(error) if error.kind == Kind::Interrupted => {
                state.interrupt();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let has_failed = matches!(outcome, Outcome::ModelFailed { .. });
        if has_failed || outcome.is_final() {
            state.note(&run.model, has_failed);
        }
        if outcome == Outcome::Interrupted {
            return Ok(());
        }
        if let Some(recorded) = recorded {
            run.take_seconds(recorded);
        }
        (self.listener)(&Step::Ended {
            run: &run,
            fresh: true,
        });
        file.add(run)
    }

    /// Makes a run here or on a worker; returns `None` if its instance is not in the dataset.
    async fn make_run(&self, cell: &RunSpec) -> Result<Option<(RunRecord, Outcome)>> {
        let Some((instance, code)) = self.instances.get(cell.instance.as_str()) else {
            return Ok(None);
        };
        let run = if let Some(remote) = self.context.schedule.remote {
            (self.listener)(&Step::Working {
                cell,
                what: "on a worker",
            });
            tokio::select! {
                run = self.context.run_remotely(cell, instance, remote) => run,
                () = setup::interrupted() => return Err(Error::interrupted()),
            }
        } else {
            match code.get_or_init(|| self.code(instance)).await {
                Ok(code) => {
                    let progress = Arc::new(CellProgress {
                        cell: cell.clone(),
                        listener: self.listener.clone(),
                    });
                    self.context.run(cell, instance, code, progress).await
                }
                Err(outcome) => Ok((RunRecord::from_events(cell, &[], outcome), outcome.clone())),
            }
        };
        failed_run(cell, run).map(Some)
    }

    /// Prepares the old code of an instance and its environment.
    async fn code(&self, instance: &Instance) -> PreparedCode {
        let report = |step: harness::Step| {
            if let harness::Step::Building { step, .. } = step {
                (self.listener)(&Step::Building {
                    instance: &instance.instance_id,
                    step: &step,
                });
            }
        };
        let RunContext {
            schedule,
            processors,
            ..
        } = &self.context;
        prepare_code(processors, schedule.harness.old_code(instance, &report)).await
    }
}

/// Converts an infrastructure error to a run with that outcome, so that other runs continue.
fn failed_run(cell: &RunSpec, run: Result<(RunRecord, Outcome)>) -> Result<(RunRecord, Outcome)> {
    match run {
        Err(error) if error.kind.is_infrastructure() => {
            let outcome = Outcome::Infrastructure {
                message: error.cause.unwrap_or(error.message),
                hint: error.hint,
                shortage: error.kind.shortage(),
            };
            Ok((RunRecord::from_events(cell, &[], &outcome), outcome))
        }
        run => run,
    }
}

/// Starts a task that records an interruption.
fn watch_for_interrupt(state: &Arc<ModelWork>) -> JoinSet<()> {
    let state = state.clone();
    let mut watch = JoinSet::new();
    watch.spawn(async move {
        setup::interrupted().await;
        state.interrupt();
    });
    watch
}

/// Forwards the progress of a run as steps of the comparison.
struct CellProgress {
    cell: RunSpec,
    listener: StepListener,
}

impl Progress for CellProgress {
    fn phase(&self, name: &str, _: &str) {
        self.working(name);
    }

    fn begins(&self, view: &StepView<'_>) {
        self.working(view.action);
    }

    fn stage(&self, stage: &str, _: &str) {
        self.working(stage);
    }

    fn note(&self, text: &str) {
        let text = format!("{}: {text}", self.cell.name());
        (self.listener)(&Step::Note { text: &text });
    }
}

impl CellProgress {
    fn working(&self, what: &str) {
        (self.listener)(&Step::Working {
            cell: &self.cell,
            what,
        });
    }
}
