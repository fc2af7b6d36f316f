//! Grading of predictions on a dataset, by this process or by the workers of a database, with reports.

mod errors;
mod jobs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use testwright_evals::InstanceResult;
use testwright_evals::dataset::Dataset;
use testwright_evals::harness::{self, Harness, Job, PortableResult, Progress, Results};
use testwright_evals::predictions::{Predictions, Warning};
use testwright_evals::report::{self, GradingReport, RunMetadata};

use testwright_agent::setup::{HarnessArgs, harness, interrupted};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_sandboxes::environment::SharedEnvironments;

pub use errors::{records, reporting, storing};
use jobs::{check_folder, jobs, missing_predictions};

/// Disk space that a worker may use while it builds an environment, in bytes.
const DISK: u64 = 4 << 30;

/// A dataset, and the settings for grading its predictions.
pub struct GradingRun {
    /// Options of this grading.
    pub options: GradingOptions,
    /// The whole dataset, including instances that were not selected.
    pub whole: Dataset,
    /// The selected instances.
    pub dataset: Dataset,
    /// Results folder.
    pub out: PathBuf,
    /// Settings of sandboxes, environments and limits.
    pub settings: Settings,
    /// Store of environments that is shared with other machines.
    pub shared: Option<Arc<dyn SharedEnvironments>>,
}

/// Options without a setting.
#[derive(Debug, Clone)]
pub struct GradingOptions {
    /// URL or path template of repositories; `{owner}` and `{name}` are replaced.
    pub repositories: String,
    /// Timeout of one test run, in seconds.
    pub test_seconds: u64,
    /// Maximum instances in parallel; `None` means half the number of processors.
    pub workers: Option<usize>,
}

/// Callback that receives each result.
pub type ResultSink<'a> = &'a mut (dyn FnMut(PortableResult) -> Result<()> + Send);

/// Grades on other machines.
#[async_trait]
pub trait RemoteGrading: Send + Sync {
    /// Grades the jobs with the settings of this harness.
    async fn grade(
        &self,
        harness: &Harness,
        jobs: &[Job<'_>],
        progress: Progress<'_>,
        add: ResultSink<'_>,
    ) -> Result<()>;

    /// Deletes the remote results, after all of them have been stored here.
    async fn forget(&self) -> Result<()>;
}

/// Displays progress.
pub trait GradingListener: Send + Sync {
    /// Displays a note for the user.
    fn note(&self, text: &str);
    /// Displays the start of a step or the result of a prediction.
    fn step(&self, step: &harness::Step);
}

impl GradingRun {
    /// Grades the predictions, writes the reports, and returns them with the results. A prediction that a set lacks counts
    /// as a failure only if a warning says that it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the folder contains other results, the harness cannot start, a file cannot be written, or grading is
    /// interrupted.
    pub async fn grade(
        &self,
        sets: &[Predictions],
        warnings: Vec<Warning>,
        remote: Option<&dyn RemoteGrading>,
        listener: &dyn GradingListener,
    ) -> Result<(GradingReport, Vec<InstanceResult>)> {
        let begun = Instant::now();
        let mut results = Results::open(&self.out).map_err(storing)?;
        let missing = missing_predictions(&warnings);
        let jobs = jobs(&self.dataset, sets, &missing);
        check_folder(&jobs, &results, &self.out)?;
        let (harness, notes) = self.harness().await?;
        let all_notes = self.settings.notes.iter().chain(&notes);
        all_notes.for_each(|note| listener.note(&format!("note: {note}")));
        let workers = remote.is_none().then(|| self.workers());
        if let Some(note) = workers.as_ref().and_then(|workers| workers.note.as_ref()) {
            listener.note(note);
        }
        let earlier = RunMetadata::read(&self.out).unwrap_or_default();
        let metadata = self.metadata(&harness, workers.as_ref(), notes);
        let mut run = RunMetadata {
            started: earlier.started.or(metadata.started),
            seconds: earlier.seconds,
            sets: sets.iter().map(|set| set.model.clone()).collect(),
            predictions_sha256: sets.iter().filter_map(digests).collect(),
            predictions: warnings,
            ..metadata
        };
        run.write(&self.out).map_err(reporting)?;
        let report = |step: harness::Step| listener.step(&step);
        let grading = async {
            match remote {
                None => {
                    let number = workers.as_ref().map_or(1, |workers| workers.number);
                    let graded =
                        harness::grade_all(&harness, jobs, &mut results, number, &report).await;
                    graded.map_err(storing)
                }
                Some(remote) => {
                    let jobs = harness::ungraded(&harness, jobs, &results, &report);
                    let mut add = |packed: PortableResult| {
                        let result = packed.unpack(&self.out).map_err(storing)?;
                        results.add(result.clone()).map_err(storing)?;
                        report(harness::Step::Graded {
                            result: Box::new(result),
                            fresh: true,
                        });
                        Ok(())
                    };
                    remote.grade(&harness, &jobs, &report, &mut add).await
                }
            }
        };
        let graded = tokio::select! {
            graded = grading => Some(graded),
            () = interrupted() => None,
        };
        run.seconds = Some(earlier.seconds.unwrap_or_default() + begun.elapsed().as_secs_f64());
        let written = run.write(&self.out).map_err(reporting);
        let Some(graded) = graded else {
            harness.backend.abandon().await?;
            written?;
            return Err(Error::interrupted());
        };
        graded?;
        written?;
        results.rewrite_sorted().map_err(storing)?;
        if let Some(remote) = remote {
            remote.forget().await?;
        }
        let report = report::write(&self.out, &run).map_err(reporting)?;
        Ok((report, results.all().cloned().collect()))
    }

    /// Returns the harness, and notes about the leftovers of killed runs.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot start.
    pub async fn harness(&self) -> Result<(Harness, Vec<String>)> {
        let harness_args = HarnessArgs {
            repositories: self.options.repositories.clone(),
            test_time: Duration::from_secs(self.options.test_seconds),
            out: self.out.clone(),
            shared: self.shared.clone(),
        };
        harness(&self.settings, harness_args).await
    }

    /// Returns the number of workers to use, reduced if memory or disk space is short.
    pub fn workers(&self) -> harness::Workers {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let requested_workers = self.options.workers.unwrap_or(processors.div_ceil(2));
        self.limit_workers(requested_workers, self.settings.limits.memory.bytes())
    }

    /// Returns the requested number of workers, reduced if memory or disk space is short.
    pub fn limit_workers(&self, requested_workers: usize, memory_each: u64) -> harness::Workers {
        let memory = std::fs::read_to_string("/proc/meminfo")
            .ok()
            .and_then(|text| {
                let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
                let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
                Some(kilobytes * 1024)
            });
        let disk = rustix::fs::statvfs(existing(&self.settings.cache))
            .ok()
            .map(|about| about.f_bavail.saturating_mul(about.f_frsize));
        let each = [memory_each, DISK];
        harness::workers(requested_workers, memory, disk, each)
    }

    /// Returns the metadata that does not change during grading.
    fn metadata(
        &self,
        harness: &Harness,
        workers: Option<&harness::Workers>,
        mut remarks: Vec<String>,
    ) -> RunMetadata {
        remarks.extend(workers.and_then(|workers| workers.note.clone()));
        let instances = self.dataset.instances.iter();
        let mut instance_ids: Vec<String> = instances.map(|i| i.instance_id.clone()).collect();
        instance_ids.sort_unstable();
        RunMetadata {
            dataset: Some(self.dataset.path.display().to_string()),
            dataset_sha256: self.dataset.sha256.clone(),
            pythons: match &harness.python {
                Some(python) => vec![python.clone()],
                None => harness.pythons.clone(),
            },
            instances: Some(self.dataset.instances.len() as u64),
            dataset_instances: Some(self.whole.instances.len() as u64),
            instance_ids,
            grader: Some(harness::VERSION.to_owned()),
            workers: workers.and_then(|workers| u32::try_from(workers.number).ok()),
            sandbox: Some(harness.backend.name().to_owned()),
            notes: remarks,
            ..RunMetadata::of_this_machine()
        }
    }
}

/// Returns the digests of a set's files by the name of the set; `None` if it comes from no file.
fn digests(set: &Predictions) -> Option<(String, Vec<String>)> {
    (!set.sha256.is_empty()).then(|| (set.model.clone(), set.sha256.clone()))
}

/// Returns the nearest existing folder.
fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"))
}
