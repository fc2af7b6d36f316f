//! Measures the server on loopback with 10,000 stored runs, on SQLite and, if Debian's postgresql is installed, on
//! Postgres.
//!
//! - Reading at 200 requests per second. Target: 99 % of the responses within 50 ms.
//! - 500 listeners on one run. Target: no event lost or out of order, and no memory kept after they leave.
//! - Memory of an idle server. Target: under 80 MB.
//!
//! Run `cargo bench --bench server` on an idle machine.

#[path = "../tests/it/product/server/databases.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod databases;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use testwright_sandboxes::http_client;
use testwright_server::store::{AttemptResults, JobId, JobStatus, NewRun, Store, StoredEvent};

const RUNS: usize = 10_000;
const REQUESTS_PER_SECOND: u32 = 200;
const SECONDS: u32 = 15;
const LISTENERS: usize = 500;
const EVENTS: i64 = 200;
/// Maximum memory of all listeners together, in megabytes: 100 kB each.
const LISTENERS_MEMORY: f64 = 50.0;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut is_good = true;
    for database in databases::all() {
        let folder = tempfile::tempdir()?;
        let (name, url) = match &database.url {
            Some(url) => ("Postgres", url.clone()),
            None => ("SQLite", Store::url_in(folder.path())),
        };
        is_good &= measure(name, &url, folder.path()).await?;
    }
    std::process::exit(i32::from(!is_good));
}

/// Measures a server on one database. Returns whether all targets are met.
async fn measure(name: &str, url: &str, folder: &Path) -> Result<bool, Failure> {
    let store = Store::open(url).await.map_err(|e| e.render())?;
    let ids = seed(&store).await?;
    let server = Server::start(folder, url)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = server.resident()?;
    let mut latencies = read(&server.url, &ids).await?;
    latencies.sort();
    let at =
        |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let before = server.resident()?;
    let (received, peak) = listen(&server, &store, &ids[0]).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = server.resident()?;
    println!(
        "{name}: {RUNS} runs, {} requests at {REQUESTS_PER_SECOND} per second: median {:.1} ms, 99 % within {:.1} ms (target: 50), maximum {:.1} ms",
        latencies.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!(
        "{name}: {LISTENERS} listeners: {received} got all {EVENTS} events in order (target: all); {before:.0} MB before, {peak:.0} MB during \
         (target: at most {LISTENERS_MEMORY:.0} more), {after:.0} MB after them"
    );
    println!("{name}: idle {idle:.0} MB (target: under 80)");
    let is_flat = peak - before <= LISTENERS_MEMORY;
    Ok(at(0.99) < 50.0 && received == LISTENERS && is_flat && idle < 80.0)
}

async fn seed(store: &Store) -> Result<Vec<JobId>, Failure> {
    let record = serde_json::json!({"outcome": "nothing", "reason": "no test within the budget", "seconds": 61.5,
        "usage": {"model_calls": 12, "prompt_tokens": 40_000, "completion_tokens": 900}});
    let record = record.to_string();
    let mut ids = Vec::new();
    for n in 0..RUNS {
        let new = NewRun {
            request:
                serde_json::json!({"issue": format!("Issue {n}\n\n{}", "It fails. ".repeat(100))})
                    .to_string(),
            title: String::new(),
            repository: format!("https://github.com/example/project-{}", n % 50),
            approach: "testwright".to_owned(),
            model: "m".to_owned(),
            idempotency_key: None,
            owner: "bench".to_owned(),
            batch: String::new(),
            traceparent: None,
        };
        let fail = |e: testwright_config::error::Error| e.message;
        let (run, _) = store.add_run(&new).await.map_err(fail)?;
        // The first run keeps running.
        let attempt = store
            .claim_next("bench")
            .await
            .map_err(fail)?
            .ok_or("the run is not there")?;
        if n > 0 {
            let results = AttemptResults {
                explanation: Some(record.clone()),
                ..AttemptResults::default()
            };
            let ended = store.end_attempt(&attempt, JobStatus::Nothing, results);
            ended.await.map_err(fail)?;
        }
        ids.push(run.id);
    }
    Ok(ids)
}

/// Sends requests at a constant rate, without waiting for responses.
async fn read(url: &str, ids: &[JobId]) -> Result<Vec<Duration>, Failure> {
    let client = http_client::builder().no_proxy().build()?;
    let mut tasks = Vec::new();
    let begun = Instant::now();
    for n in 0..REQUESTS_PER_SECOND * SECONDS {
        let due = begun + Duration::from_secs(1) * n / REQUESTS_PER_SECOND;
        tokio::time::sleep_until(due.into()).await;
        let id = &ids[(n as usize * 7919) % ids.len()];
        let path = match n % 4 {
            0 => "/v1/runs?limit=50".to_owned(),
            1 => format!("/v1/runs?status=nothing&before={id}&limit=20"),
            _ => format!("/v1/runs/{id}"),
        };
        let request = client.get(format!("{url}{path}"));
        tasks.push(tokio::spawn(async move {
            let answer = request.send().await?.error_for_status()?;
            answer.bytes().await?;
            Ok::<Duration, Failure>(due.elapsed())
        }));
    }
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.push(task.await??);
    }
    Ok(latencies)
}

/// Returns the number of listeners that got all events in order, and the peak memory of the server.
async fn listen(server: &Server, store: &Store, run: &JobId) -> Result<(usize, f64), Failure> {
    let url = &server.url;
    let client = http_client::builder().no_proxy().build()?;
    let listeners: Vec<_> = (0..LISTENERS)
        .map(|_| {
            let request = client.get(format!("{url}/v1/runs/{run}/events"));
            tokio::spawn(async move {
                let mut stream = request.send().await?.bytes_stream();
                let (mut text, mut next) = (String::new(), 1);
                while let Some(piece) = stream.next().await {
                    text.push_str(&String::from_utf8_lossy(&piece?));
                    while let Some((line, rest)) = text.split_once('\n') {
                        if let Some(id) = line.strip_prefix("id: ") {
                            if id.parse() != Ok(next) {
                                return Ok(false);
                            }
                            next += 1;
                        }
                        if next > EVENTS {
                            return Ok(true);
                        }
                        text = rest.to_owned();
                    }
                }
                Ok::<bool, Failure>(false)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut peak = server.resident()?;
    for number in 1..=EVENTS {
        let line = format!(
            r#"{{"event":"stage","stage":"write","result":"{}"}}"#,
            "x".repeat(500)
        );
        let added = store.add_event(run, 1, StoredEvent { number, line });
        added.await.map_err(|e| e.message)?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        peak = peak.max(server.resident()?);
    }
    let mut received = 0;
    for listener in listeners {
        let got = tokio::time::timeout(Duration::from_secs(60), listener).await;
        received += usize::from(matches!(got, Ok(Ok(Ok(true)))));
    }
    Ok((received, peak))
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path, database: &str) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_testwright"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--workers",
                "0",
                "--database",
                database,
                "--data",
            ])
            .arg(folder)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or("no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let line = lines.next().ok_or("the server ended")??;
        std::thread::spawn(move || lines.for_each(drop));
        let (_, url) = line.split_once("listening on ").ok_or(line.clone())?;
        Ok(Server {
            child,
            url: url.to_owned(),
        })
    }

    /// Returns the resident memory in megabytes.
    fn resident(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
