//! Schedules instances over several workers. A worker grades all predictions of an instance. Instances are sorted so
//! that cached environments are reused. Each result is on disk before the next grading starts.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;

use futures::future::join_all;
use testwright_sandboxes::mutex::lock;

use super::grading_key::{key, ungraded_result};
use super::progress::{Progress, Step};
use super::results::{Results, ResultsError};
use super::runs::Grading;
use super::timeline::{Activity, RunSlots, Timeline};
use super::{GradingFailure, Harness};
use crate::dataset::Instance;
use crate::predictions::Prediction;
use crate::result::{Infrastructure, InstanceResult};

/// An instance and its predictions.
pub struct Job<'a> {
    /// The instance to grade on.
    pub instance: &'a Instance,
    /// Predictions for the instance, one per prediction set.
    pub predictions: Vec<&'a Prediction>,
}

/// Number of workers, and a note if it had to be reduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workers {
    /// Number of workers, at least 1.
    pub number: usize,
    /// Reason for the reduction, for the user; `None` if there was none.
    pub note: Option<String>,
}

/// Returns the requested number of workers, reduced if memory or disk space cannot hold what each may use.
pub fn workers(
    requested_workers: usize,
    memory: Option<u64>,
    disk: Option<u64>,
    each: [u64; 2],
) -> Workers {
    let fit = |room: Option<u64>, one: u64| {
        room.map_or(usize::MAX, |room| {
            usize::try_from(room / one.max(1)).unwrap_or(usize::MAX)
        })
    };
    let giga = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (by_memory, by_disk) = (fit(memory, each[0]), fit(disk, each[1]));
    let most = by_memory.min(by_disk).max(1);
    let number = requested_workers.clamp(1, most);
    let (what, room, one) = match by_memory <= by_disk {
        true => ("memory", memory, each[0]),
        false => ("disk", disk, each[1]),
    };
    let note = (number < requested_workers).then(|| {
        format!(
            "using {number} of {requested_workers} workers: each needs up to {:.1} GiB of {what}, and {:.1} GiB are free",
            giga(one),
            giga(room.unwrap_or_default())
        )
    });
    Workers { number, note }
}

/// Returns the jobs without a result, sorted so that cached environments are reused. Existing results are reported to
/// `progress`.
pub fn ungraded<'a>(
    harness: &Harness,
    mut jobs: Vec<Job<'a>>,
    results: &Results,
    progress: Progress<'_>,
) -> Vec<Job<'a>> {
    jobs.sort_by_key(|job| {
        let i: &'a Instance = job.instance;
        (&i.repo, &i.version, &i.created_at, &i.instance_id)
    });
    for job in &mut jobs {
        job.predictions.retain(|prediction| {
            let instance = job.instance;
            let key = key(harness, instance, prediction);
            let existing_result =
                results.get(&prediction.model_name_or_path, &instance.instance_id, &key);
            if let Some(result) = existing_result {
                progress(Step::Graded {
                    result: Box::new(result.clone()),
                    fresh: false,
                });
            }
            existing_result.is_none()
        });
    }
    jobs.retain(|job| !job.predictions.is_empty());
    jobs
}

/// Grades one job, one test run at a time. `add` stores each result before the next prediction starts.
///
/// # Errors
///
/// Fails if `add` fails. Infrastructure failures are part of the results.
pub async fn grade_job(
    harness: &Harness,
    job: &Job<'_>,
    progress: Progress<'_>,
    add: &(dyn Fn(InstanceResult) -> Result<(), ResultsError> + Sync),
) -> Result<(), ResultsError> {
    grade_predictions(harness, job, &RunSlots::new(1), progress, add).await
}

/// Grades all jobs without a result. Dropping the future loses only the gradings in progress.
///
/// # Errors
///
/// Fails if a result cannot be written. Infrastructure failures are part of the results.
pub async fn grade_all(
    harness: &Harness,
    jobs: Vec<Job<'_>>,
    results: &mut Results,
    workers: usize,
    progress: Progress<'_>,
) -> Result<(), ResultsError> {
    let waiting = VecDeque::from(ungraded(harness, jobs, results, progress));
    let waiting = Mutex::new(waiting);
    let slots = RunSlots::new(workers);
    let results = Mutex::new(results);
    let work = || async {
        loop {
            let Some(job) = lock(&waiting).pop_front() else {
                return Ok(());
            };
            grade_predictions(harness, &job, &slots, progress, &|result| {
                lock(&results).add(result)
            })
            .await?;
        }
    };
    let done: Vec<Result<(), ResultsError>> = join_all((0..workers.max(1)).map(|_| work())).await;
    done.into_iter().collect()
}

async fn grade_predictions(
    harness: &Harness,
    job: &Job<'_>,
    slots: &RunSlots,
    progress: Progress<'_>,
    add: &(dyn Fn(InstanceResult) -> Result<(), ResultsError> + Sync),
) -> Result<(), ResultsError> {
    let mut timeline = Timeline::new(slots);
    let prepared = async {
        let prepare = harness.prepare(job.instance, progress);
        let prepared = timeline.spend(Activity::Build, prepare).await?;
        let baseline = harness
            .baseline_runs(job.instance, &prepared, &timeline)
            .await?;
        Ok::<_, GradingFailure>((prepared, baseline))
    }
    .await;
    let stopped = |infrastructure: &Infrastructure| {
        let mut infrastructure = infrastructure.clone();
        let build_log = infrastructure.log.take().map(PathBuf::from);
        infrastructure.log = build_log.and_then(|path| harness.keep_build_log(job.instance, &path));
        infrastructure
    };
    for prediction in &job.predictions {
        progress(Step::Grading {
            instance: job.instance.instance_id.clone(),
            prediction: prediction.model_name_or_path.clone(),
        });
        let mut result = match &prepared {
            Ok((prepared, baseline)) => {
                let grading = Grading {
                    harness,
                    instance: job.instance,
                    prepared,
                    baseline,
                    timeline: &timeline,
                };
                let mut graded = grading.grade(prediction).await;
                if prepared.is_cached() {
                    graded.cached.insert(0, "build".to_owned());
                }
                graded
            }
            Err(why) => ungraded_result(harness, job.instance, prediction, stopped(why)),
        };
        // Time for shared runs counts towards the first prediction.
        result.seconds = timeline.seconds();
        timeline = Timeline::new(slots);
        add(result.clone())?;
        progress(Step::Graded {
            result: Box::new(result),
            fresh: true,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
