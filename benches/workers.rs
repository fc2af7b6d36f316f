//! Measures worker processes on one Postgres.
//!
//! - 50 runs with four workers. Two workers are killed at random times, and Postgres is restarted once. Target: every
//!   run ends exactly once, no step is lost or repeated, no sandbox is left.
//! - Throughput of one worker per CPU relative to a single worker, while all are busy. Target: at least 0.9 for each.
//! - Overhead of the queue for a run, on both databases. Target: under 20 ms.
//!
//! Run `cargo bench --bench workers` on an idle machine. It needs Debian's postgresql.

#[path = "../tests/it/product/server/databases.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod databases;
#[path = "processor_time/mod.rs"]
mod processor_time;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use processor_time::processor_seconds;
use testwright_config::error::Error;
use testwright_server::heartbeat::Heartbeat;
use testwright_server::jobs::{JobSource, run_jobs};
use testwright_server::store::{
    Attempt, AttemptResults, JobFilter, JobId, JobStatus, NewRun, Store, StoredRun, now,
};

const RUNS: usize = 50;
const WORKERS: usize = 4;
/// Number of runs for each worker.
const RUNS_EACH: usize = 24;
/// Number of replies of the rule-based model on the example, however often the run is interrupted.
const REPLIES: usize = 6;
/// Number of runs that do nothing.
const NO_OP_RUNS: usize = 300;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut is_good = true;
    for database in databases::all() {
        let embedded = Store::url_in(folder.path());
        let url = database.url.as_deref().unwrap_or(&embedded);
        let milliseconds = queue_cost(url).await?;
        let name = if database.url.is_some() {
            "Postgres"
        } else {
            "SQLite"
        };
        println!(
            "overhead of the queue on {name}: {milliseconds:.1} ms per run (target: under 20)"
        );
        is_good &= milliseconds < 20.0;
    }
    let Some(database) = databases::all().into_iter().find(|d| d.url.is_some()) else {
        return Err("Postgres is not installed (apt-get install postgresql)".into());
    };
    let bench = Bench::new(folder.path(), database).await?;
    is_good &= bench.crashes().await?;
    is_good &= bench.throughput().await?;
    drop(bench);
    std::process::exit(i32::from(!is_good));
}

fn failed(error: Error) -> Failure {
    error.with_cause().into()
}

/// A job runner that ends each run at once.
struct NoOpRunner {
    store: Store,
    ended: AtomicUsize,
}

#[async_trait::async_trait]
impl JobSource for NoOpRunner {
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>, Error> {
        self.store.claim_next(worker).await
    }

    async fn run(&self, taken: &Attempt) -> Result<(), Error> {
        let results = AttemptResults::default();
        let ended = self.store.end_attempt(taken, JobStatus::Nothing, results);
        ended.await?;
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Measures the milliseconds from request to end for each run that does nothing.
async fn queue_cost(url: &str) -> Result<f64, Failure> {
    let store = Store::open(url).await.map_err(failed)?;
    let ender = Arc::new(NoOpRunner {
        store: store.clone(),
        ended: AtomicUsize::new(0),
    });
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let begun = Instant::now();
    for n in 0..NO_OP_RUNS {
        store.add_run(&new_run(n % 3)).await.map_err(failed)?;
    }
    let waiting = async {
        while ender.ended.load(Ordering::SeqCst) < NO_OP_RUNS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let _ = stop.send(true);
        seconds
    };
    let heartbeat = Heartbeat::new(store.clone(), 1);
    let working = run_jobs(&store, ender.clone(), &heartbeat, 1, stopped);
    let ((), seconds) = tokio::join!(working, waiting);
    Ok(seconds * 1e3 / NO_OP_RUNS as f64)
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Returns a run of the example with the rule-based model, for one of several owners.
fn new_run(owner: usize) -> NewRun {
    let issue = std::fs::read_to_string(examples().join("issue.md")).unwrap_or_default();
    let repository = examples().join("slugs").display().to_string();
    NewRun {
        request: serde_json::json!({"issue": issue, "repository": repository}).to_string(),
        title: String::new(),
        repository,
        approach: "snippet".to_owned(),
        model: "snippet".to_owned(),
        idempotency_key: None,
        owner: format!("owner-{owner}"),
        batch: String::new(),
        traceparent: None,
    }
}

struct Bench {
    folder: PathBuf,
    database: databases::Database,
    store: Store,
}

impl Bench {
    async fn new(folder: &Path, database: databases::Database) -> Result<Self, Failure> {
        let url = database.url.as_deref().unwrap_or_default();
        let store = Store::open(url).await.map_err(failed)?;
        Ok(Bench {
            folder: folder.to_owned(),
            store,
            database,
        })
    }

    async fn ask(&self, runs: usize) -> Result<Vec<JobId>, Failure> {
        let mut ids = Vec::new();
        for n in 0..runs {
            let (run, _) = self.store.add_run(&new_run(n % 3)).await.map_err(failed)?;
            ids.push(run.id);
        }
        Ok(ids)
    }

    fn worker(&self, name: &str) -> Result<Worker, Failure> {
        self.worker_on(name, None)
    }

    /// Starts a worker on one CPU, or on all.
    fn worker_on(&self, name: &str, processor: Option<usize>) -> Result<Worker, Failure> {
        let program = env!("CARGO_BIN_EXE_testwright");
        let mut command = match processor {
            Some(processor) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &processor.to_string(), program]);
                command
            }
            None => Command::new(program),
        };
        let child = command
            .args(["worker", "--workers", "1", "--database"])
            .arg(self.database.url.as_deref().unwrap_or_default())
            .arg("--data")
            .arg(self.folder.join(name))
            .env("XDG_CACHE_HOME", self.folder.join("cache"))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Worker(child))
    }

    /// Waits until these runs have ended, even if the database is down meanwhile.
    async fn wait(&self, ids: &[JobId]) -> Result<Vec<StoredRun>, Failure> {
        loop {
            // The store has the exact times of their ends.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let filter = JobFilter {
                limit: 10_000,
                ..JobFilter::default()
            };
            let Ok(runs) = self.store.runs(&filter, |run| run).await else {
                continue;
            };
            let ours: Vec<StoredRun> = runs.into_iter().filter(|r| ids.contains(&r.id)).collect();
            if ours.iter().all(|run| run.status.has_ended()) {
                return Ok(ours);
            }
        }
    }

    async fn crashes(&self) -> Result<bool, Failure> {
        // The environment is built once in advance.
        let first = self.ask(1).await?;
        let mut workers = vec![self.worker("0")?];
        self.wait(&first).await?;
        for n in 1..WORKERS {
            workers.push(self.worker(&n.to_string())?);
        }
        let begun = Instant::now();
        let ids = self.ask(RUNS).await?;
        let some_time = || tokio::time::sleep(Duration::from_secs(fastrand::u64(4..12)));
        some_time().await;
        drop(workers.swap_remove(fastrand::usize(..workers.len())));
        some_time().await;
        self.database.restart();
        some_time().await;
        drop(workers.swap_remove(fastrand::usize(..workers.len())));
        let runs = self.wait(&ids).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut attempts, mut faults) = (0, Vec::new());
        for run in &runs {
            *statuses.entry(run.status.as_str()).or_default() += 1;
            attempts += run.attempt;
            if let Some(fault) = self.fault(run).await? {
                faults.push(format!("{}: {fault}", run.id));
            }
        }
        workers.iter_mut().try_for_each(Worker::terminate)?;
        drop(workers);
        let left = self.sandboxes()?;
        println!(
            "{RUNS} runs, {WORKERS} workers, two killed, Postgres restarted: {statuses:?} in {seconds:.0} s and {attempts} attempts, \
             {} trajectories with faults (target: 0), {left} sandbox processes left (target: 0)",
            faults.len()
        );
        faults.iter().for_each(|fault| println!("  {fault}"));
        Ok(faults.is_empty() && left == 0 && statuses.get("accepted") == Some(&RUNS))
    }

    /// Returns what is wrong with the trajectory of a finished run.
    async fn fault(&self, run: &StoredRun) -> Result<Option<String>, Failure> {
        let events = self
            .store
            .events(&run.id, 0, 10_000)
            .await
            .map_err(failed)?;
        let (mut ends, mut begins, mut replies) = (0, 0, 0);
        for (n, event) in events.iter().enumerate() {
            if event.number != n as i64 + 1 {
                return Ok(Some(format!("event {} is missing", n + 1)));
            }
            let event: serde_json::Value = serde_json::from_str(&event.line)?;
            match event["event"].as_str() {
                Some("ended") => ends += 1,
                Some("started") => begins += 1,
                Some("reply") => replies += 1,
                _ => {}
            }
        }
        Ok(match (begins, ends, replies) {
            (1, 1, REPLIES) => None,
            _ => Some(format!(
                "{begins} starts, {ends} ends, {replies} model replies"
            )),
        })
    }

    /// Counts the processes that use the cache of this benchmark. The last ones may take a moment to exit.
    fn sandboxes(&self) -> Result<usize, Failure> {
        std::thread::sleep(Duration::from_secs(5));
        let cache = self.folder.join("cache").display().to_string();
        let mut left = 0;
        for process in std::fs::read_dir("/proc")? {
            let mounts = process?.path().join("mountinfo");
            let has_it = std::fs::read_to_string(mounts).is_ok_and(|text| text.contains(&cache));
            left += usize::from(has_it);
        }
        Ok(left)
    }

    /// Compares one worker per CPU with a single worker, first pinned to one CPU each, then unpinned.
    ///
    /// Pinned workers share only the database, the caches and the memory. A single unpinned worker makes its reruns in
    /// parallel on all CPUs.
    async fn throughput(&self) -> Result<bool, Failure> {
        let processors = std::thread::available_parallelism()?.get();
        let alone = self.rate(1, true).await?;
        let together = self.rate(processors, true).await?;
        let ratio = together.runs_a_second / (alone.runs_a_second * processors as f64);
        println!(
            "on one CPU each: one worker {alone}; {processors} workers {together}: {ratio:.2} times the sum (target: 0.9)"
        );
        let alone = self.rate(1, false).await?;
        let together = self.rate(processors, false).await?;
        let allowed = processors as f64 / alone.processor_seconds;
        println!(
            "on all CPUs: one worker {alone}; {processors} workers {together}: {:.2} times the sum, {:.2} times what the CPUs allow",
            together.runs_a_second / (alone.runs_a_second * processors as f64),
            together.runs_a_second / allowed.min(alone.runs_a_second * processors as f64),
        );
        Ok(ratio >= 0.9)
    }

    /// Measures the rate while all workers are busy: from the end of their first runs until the queue is empty.
    async fn rate(&self, workers: usize, is_pinned: bool) -> Result<Rate, Failure> {
        let mut all = Vec::new();
        for n in 0..workers {
            let name = format!("rate-{workers}-{is_pinned}-{n}");
            all.push(self.worker_on(&name, is_pinned.then_some(n))?);
        }
        // All workers have started.
        let first = self.ask(workers).await?;
        self.wait(&first).await?;
        let meter = CpuMeter::start();
        let ids = self.ask(workers * RUNS_EACH).await?;
        let runs = self.wait(&ids).await?;
        let mut ends: Vec<i64> = runs.iter().filter_map(|run| run.ended_at).collect();
        ends.sort_unstable();
        let (begin, end) = (2 * workers - 1, ends.len() - workers);
        let (begun, ended) = (ends[begin], ends[end]);
        let made = (end - begin) as f64;
        Ok(Rate {
            runs_a_second: made * 1e3 / (ended - begun) as f64,
            processor_seconds: meter.between(begun, ended)? / made,
        })
    }
}

struct Rate {
    runs_a_second: f64,
    /// CPU time of the whole machine for each run.
    processor_seconds: f64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "makes {:.1} runs per minute ({:.2} s of CPU time each)",
            self.runs_a_second * 60.0,
            self.processor_seconds
        )
    }
}

/// A thread that samples the CPU time.
struct CpuMeter(
    tokio::task::JoinHandle<Result<(), Failure>>,
    Arc<Mutex<Vec<(i64, f64)>>>,
);

impl CpuMeter {
    fn start() -> Self {
        let readings = Arc::new(Mutex::new(Vec::new()));
        let written = readings.clone();
        let reading = tokio::spawn(async move {
            loop {
                let reading = (now(), processor_seconds()?);
                written.lock().map_err(|e| e.to_string())?.push(reading);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        CpuMeter(reading, readings)
    }

    /// Returns the CPU time between two times, in milliseconds since 1970.
    fn between(self, begun: i64, ended: i64) -> Result<f64, Failure> {
        self.0.abort();
        let readings = self.1.lock().map_err(|e| e.to_string())?;
        let at = |time: i64| {
            let mut readings = readings.iter();
            let reading = readings.find(|(read_at, _)| *read_at >= time);
            reading
                .map(|(_, seconds)| *seconds)
                .ok_or("the CPU time was not read")
        };
        Ok(at(ended)? - at(begun)?)
    }
}

/// A worker process, killed on drop.
struct Worker(Child);

impl Worker {
    /// Stops the worker with SIGTERM, as an operator does.
    fn terminate(&mut self) -> Result<(), Failure> {
        Command::new("kill").arg(self.0.id().to_string()).status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
