//! Distributes many cases over a few sandboxes, and discards a sandbox that a case has damaged.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use testwright_sandboxes::mutex::lock;
use testwright_sandboxes::sandbox::Result;
use testwright_tools::cases::{CaseAnswer, CaseRun};

use super::coverage::{CoverageContext, MeasuredLines};
use super::outcome::{classify, crashed};
use super::worker::{Worker, WorkerLost};
use super::{
    Case, CaseCoverage, CaseEnvironment, CaseOptions, CaseOutcome, CaseProgress, Verification,
};

/// Number of hash seeds for repeated runs. Each seed keeps a process from which runs are forked.
const SEED_COUNT: u32 = 3;
/// Path of a control case, which shows whether a failure is due to the sandbox or to the case.
const CONTROL_PATH: &str = "test_testwright_control.py";

/// Runs all cases and returns their results in order.
pub(super) async fn run(
    place: &CaseEnvironment,
    cases: &[Case],
    options: &CaseOptions,
    measuring: Option<&CoverageContext>,
    done: CaseProgress<'_>,
) -> Result<Vec<CaseCoverage>> {
    let batch = Batch {
        place,
        options,
        measuring,
    };
    let next = AtomicUsize::new(0);
    let ended = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<CaseCoverage>>> = Mutex::new(vec![None; cases.len()]);
    let work = || async {
        let mut worker = None;
        let worked = async {
            while let Some((at, case)) = next_case(&next, cases) {
                let ran = batch.case(case, &mut worker).await?;
                lock(&results)[at] = Some(ran);
                done(ended.fetch_add(1, Ordering::Relaxed) + 1);
            }
            Ok(())
        };
        let worked: Result<()> = worked.await;
        if worked.is_err() {
            // Stop the other workers early.
            next.store(cases.len(), Ordering::Relaxed);
        }
        let stopped = match worker {
            Some(worker) => Worker::stop(worker).await,
            None => Ok(()),
        };
        worked.and(stopped)
    };
    let workers = options.workers.clamp(1, cases.len().max(1));
    let worked: Vec<Result<()>> = join_all((0..workers).map(|_| work())).await;
    worked.into_iter().collect::<Result<()>>()?;
    let results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    Ok(results.into_iter().flatten().collect())
}

fn next_case<'c>(next: &AtomicUsize, cases: &'c [Case]) -> Option<(usize, &'c Case)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    cases.get(at).map(|case| (at, case))
}

struct Batch<'a> {
    place: &'a CaseEnvironment,
    options: &'a CaseOptions,
    measuring: Option<&'a CoverageContext>,
}

impl Batch<'_> {
    /// Runs one case as many times as requested.
    async fn case(&self, case: &Case, worker: &mut Option<Worker>) -> Result<CaseCoverage> {
        let first = self.run_once(case, 0, worker).await?;
        let (mut outcome, seconds, measured) = match first {
            Ok((answer, measured)) => (classify(&answer), answer.report.seconds, measured),
            Err(lost) => {
                let measured = MeasuredLines::unknown(&lost.0);
                (crashed(lost.0), case.timeout.as_secs_f64(), measured)
            }
        };
        for repeat in 1..self.options.repeats {
            // Another run after a timeout would take as long and reveal nothing new.
            if matches!(outcome, CaseOutcome::TimedOut | CaseOutcome::Flaky) {
                break;
            }
            let again = self.run_once(case, repeat, worker).await?;
            let again = again.map_or_else(|lost| crashed(lost.0), |(answer, _)| classify(&answer));
            if std::mem::discriminant(&again) != std::mem::discriminant(&outcome) {
                outcome = CaseOutcome::Flaky;
            }
        }
        Ok(CaseCoverage {
            verification: Verification {
                id: case.id.clone(),
                outcome,
                seconds,
            },
            files: measured.files,
            contexts: measured.contexts,
            problem: measured.problem,
        })
    }

    /// Runs a case once. A crash is the case's fault if the sandbox dies twice but survives the control case.
    async fn run_once(
        &self,
        case: &Case,
        repeat: u32,
        worker: &mut Option<Worker>,
    ) -> Result<std::result::Result<(CaseAnswer, MeasuredLines), WorkerLost>> {
        let run = CaseRun {
            path: case.path.clone(),
            source: case.source.clone(),
            tests: case.tests.clone(),
            milliseconds: u64::try_from(case.timeout.as_millis()).unwrap_or(u64::MAX),
            hash_seed: repeat % SEED_COUNT,
            measured: self.measuring.is_some() && repeat == 0,
            contexts: self.options.contexts,
        };
        let mut lost = match self.in_sandbox(&run, worker).await? {
            Ok(answer) => return Ok(Ok(answer)),
            Err(lost) => lost,
        };
        if let Ok(answer) = self.in_sandbox(&run, worker).await?.map_err(|e| lost = e) {
            return Ok(Ok(answer));
        }
        match self.in_sandbox(&control(), worker).await? {
            Ok((answer, _)) if classify(&answer) == CaseOutcome::Passed => Ok(Err(lost)),
            Ok(_) | Err(_) => Err(lost.error()),
        }
    }

    async fn in_sandbox(
        &self,
        run: &CaseRun,
        idle_worker: &mut Option<Worker>,
    ) -> Result<std::result::Result<(CaseAnswer, MeasuredLines), WorkerLost>> {
        let mut worker = match idle_worker.take() {
            Some(worker) => worker,
            None => {
                let package = self.measuring.map(|measuring| &measuring.package);
                Worker::start(self.place, self.options.warm, package).await?
            }
        };
        let answer = match worker.run(run.clone()).await? {
            Ok(answer) => answer,
            Err(lost) => {
                worker.stop().await?;
                return Ok(Err(lost));
            }
        };
        let measured = match self.measuring.filter(|_| run.measured) {
            // A changed workspace would give wrong coverage.
            Some(measuring) if answer.is_clean => {
                let coverage = answer.coverage.as_ref();
                measuring.convert(coverage, &run.path, &mut worker).await?
            }
            Some(_) => MeasuredLines::unknown("the test changed the code"),
            None => MeasuredLines::default(),
        };
        match answer.is_clean {
            true => *idle_worker = Some(worker),
            false => worker.stop().await?,
        }
        Ok(Ok((answer, measured)))
    }
}

fn control() -> CaseRun {
    CaseRun {
        path: CONTROL_PATH.to_owned(),
        source: "def test_runs():\n    pass\n".to_owned(),
        tests: Vec::new(),
        milliseconds: u64::try_from(Duration::from_secs(120).as_millis()).unwrap_or(u64::MAX),
        hash_seed: 0,
        measured: false,
        contexts: false,
    }
}
