//! The job loop: the delay until a job is claimed, and recovery of jobs whose process no longer runs them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use testwright_config::error::Result;
use testwright_config::stop_signal::StopSignal;
use testwright_server::heartbeat::Heartbeat;
use testwright_server::jobs::{JobSource, run_jobs};
use testwright_server::store::{
    Attempt, AttemptResults, JobKind, JobStatus, Store, StoredRun, WorkerProcess,
};
use tokio::sync::watch;

use super::{databases, stored_run};
use crate::support::program::TestDir;

/// Behaviour of a job in its first attempt. Later attempts end the run.
#[derive(Clone, Copy, PartialEq)]
enum FirstAttempt {
    Ends,
    IsForgotten,
    Panics,
    RunsUntilStopped,
}

struct Runs {
    store: Store,
    first: FirstAttempt,
    stop: StopSignal,
}

#[async_trait::async_trait]
impl JobSource for Runs {
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>> {
        self.store.claim_next(worker).await
    }

    async fn run(&self, taken: &Attempt) -> Result<()> {
        match self.first {
            FirstAttempt::IsForgotten if taken.number == 1 => return Ok(()),
            FirstAttempt::Panics if taken.number == 1 => panic!("as a bug does"),
            FirstAttempt::RunsUntilStopped => {
                let mut stop = self.stop.clone();
                let _ = stop.wait_for(|stop| *stop).await;
            }
            _ => {}
        }
        let results = AttemptResults::default();
        let ended = self.store.end_attempt(taken, JobStatus::Nothing, results);
        ended.await.map(drop)
    }
}

/// A process with one slot.
struct Process {
    stop: watch::Sender<bool>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Process {
    fn start(store: &Store, first: FirstAttempt) -> Self {
        let (stop, stopped) = watch::channel(false);
        let runs = Arc::new(Runs {
            store: store.clone(),
            first,
            stop: stopped.clone(),
        });
        let heartbeat = Heartbeat::new(store.clone(), 1);
        let (beating, until) = (heartbeat.clone(), stopped.clone());
        let beat = tokio::spawn(async move { beating.run_until(until).await });
        let store = store.clone();
        let work =
            tokio::spawn(async move { run_jobs(&store, runs, &heartbeat, 1, stopped).await });
        Process {
            stop,
            tasks: [beat, work],
        }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn add(store: &Store) -> StoredRun {
    store.add_run(&stored_run("a", "")).await.unwrap().0
}

async fn wait_for(store: &Store, run: &StoredRun, status: JobStatus) -> StoredRun {
    let begun = Instant::now();
    loop {
        let run = store.run(&run.id).await.unwrap().unwrap();
        if run.status == status {
            return run;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{run:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_process_claims_new_job_at_once() {
    const JOBS: u32 = 5;
    for database in databases::all() {
        let place = TestDir::new();
        let url = database.url_in(&place.path("."));
        let store = Store::open(&url).await.unwrap();
        let elsewhere = Store::open(&url).await.unwrap();
        let process = Process::start(&store, FirstAttempt::Ends);
        let waited = async |adds: &Store| {
            let mut waited = Duration::ZERO;
            for _ in 0..JOBS {
                // The process must have found an empty queue before the job is added.
                tokio::time::sleep(Duration::from_millis(200)).await;
                let run = add(adds).await;
                let added = Instant::now();
                wait_for(&store, &run, JobStatus::Nothing).await;
                waited += added.elapsed();
            }
            waited / JOBS
        };
        let (own, others) = (waited(&store).await, waited(&elsewhere).await);
        process.end().await;
        assert!(own < Duration::from_millis(200), "{own:?}");
        assert!(others < Duration::from_millis(1200), "{others:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_job_is_claimed_again() {
    for database in databases::all() {
        for first in [FirstAttempt::IsForgotten, FirstAttempt::Panics] {
            let place = TestDir::new();
            let store = Store::open(&database.url_in(&place.path("."))).await;
            let store = store.unwrap();
            let process = Process::start(&store, first);
            let run = add(&store).await;
            let run = wait_for(&store, &run, JobStatus::Nothing).await;
            assert_eq!(run.attempt, 2);
            process.end().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_jobs_of_dead_processes_move() {
    for database in databases::all() {
        let place = TestDir::new();
        let store = Store::open(&database.url_in(&place.path("."))).await;
        let store = store.unwrap();
        let living = Process::start(&store, FirstAttempt::RunsUntilStopped);
        let stays = add(&store).await;
        wait_for(&store, &stays, JobStatus::Running).await;
        // This process sends only one heartbeat.
        let dead = WorkerProcess {
            name: "dead".to_owned(),
            host: String::new(),
            version: String::new(),
            slots: 1,
            started_at: 0,
        };
        store.put_heartbeat(&dead).await.unwrap();
        let moves = add(&store).await;
        let begun = Instant::now();
        assert_eq!(
            store.claim_next("dead").await.unwrap().unwrap().id,
            moves.id
        );
        let other = Process::start(&store, FirstAttempt::Ends);
        let moved = wait_for(&store, &moves, JobStatus::Nothing).await;
        assert_eq!(moved.attempt, 2);
        let seconds = begun.elapsed().as_secs();
        assert!((14..40).contains(&seconds), "{seconds}");
        let stayed = store.run(&stays.id).await.unwrap().unwrap();
        assert_eq!((stayed.status, stayed.attempt), (JobStatus::Running, 1));
        let workers = store.workers().await.unwrap();
        let alive = workers
            .iter()
            .map(|worker| (worker.is_alive, worker.runs.len()));
        assert_eq!(
            alive.collect::<Vec<_>>(),
            [(false, 0), (true, 1), (true, 0)]
        );
        living.end().await;
        other.end().await;
        assert_eq!(store.workers().await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn job_ends_after_repeated_crashes() {
    for database in databases::all() {
        let place = TestDir::new();
        let store = Store::open(&database.url_in(&place.path("."))).await;
        let store = store.unwrap();
        let run = add(&store).await;
        let lose = async || {
            let taken = store.claim_next("w").await.unwrap()?;
            assert!(store.return_orphan(&taken).await.unwrap());
            Some(taken.number)
        };
        let mut attempts = 0;
        while let Some(number) = lose().await {
            attempts = number;
        }
        assert_eq!(attempts, 26);
        let ended = store.run(&run.id).await.unwrap().unwrap();
        assert_eq!(ended.status, JobStatus::Infrastructure);
        assert_eq!(ended.record_value()["message"], "its process died 26 times");
        assert!(ended.ended_at.is_some());
        assert!(store.requeue(JobKind::Run, &run.id).await.unwrap());
        assert_eq!(lose().await, Some(27));
        wait_for(&store, &run, JobStatus::Queued).await;
    }
}
