//! Measures the overhead of a comparison on 20 instances and every approach, with a mock model service.
//!
//! - CPU time of the program itself, without the processes of tools and tests, as a share of the wall time. Target:
//!   under 5 %.
//! - Speed with two workers relative to one. Target: at least 1.7, or 0.9 times what the CPUs allow, because one worker
//!   already makes reruns in parallel.
//!
//! Grading has its own benchmark (`eval`). Run `cargo bench --bench comparison` on an idle machine.

#[path = "processor_time/mod.rs"]
mod processor_time;
#[path = "../tests/it/product/eval/repository.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod repository;
#[path = "../tests/it/support/server.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod server;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use processor_time::processor_seconds;
use repository::{GOOD, Repository, lines};
use serde_json::{Value, json};
use server::{MockServer, Request, Response};

const INSTANCES: usize = 20;
/// Response time of the model service.
const ANSWER: Duration = Duration::from_millis(200);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path();
    let repository = Repository::new(folder.join("repositories/example+sums"), None);
    let issue = "add(1, -2) gives 0, and I expected -1.";
    let instances: Vec<Value> = (0..INSTANCES)
        .map(|n| repository.instance(&format!("instance-{n}"), issue))
        .collect();
    lines(&folder.join("dataset.jsonl"), &instances);
    let server = MockServer::start_parallel(answer);
    let bench = Bench {
        folder: folder.to_owned(),
        url: format!("{}/v1", server.url),
    };
    // The first run builds the environment and caches the results of the base suite.
    bench.compare("begin", 1, &["--instances", "instance-0"])?;
    let one = bench.compare("one", 1, &[])?;
    let two = bench.compare("two", 2, &[])?;
    let (own, faster) = (one.own / one.wall, one.wall / two.wall);
    let processors = std::thread::available_parallelism()?.get() as f64;
    let allowed = one.wall / (one.processors / processors);
    println!(
        "{INSTANCES} instances: {:.1} s by one worker ({:.1} s of the processors), of which the program itself takes {:.1} % \
         (target: under 5 %); two workers take {:.1} s ({:.1} s of CPU time): {faster:.2} times as fast (target: at least \
         1.7), where the processors allow {allowed:.2}",
        one.wall,
        one.processors,
        100.0 * own,
        two.wall,
        two.processors,
    );
    let is_fast = faster >= 1.7 || faster >= 0.9 * allowed;
    std::process::exit(i32::from(own >= 0.05 || !is_fast));
}

/// Seconds of the runs of a comparison, without grading.
struct Seconds {
    wall: f64,
    /// CPU time of the program itself.
    own: f64,
    /// CPU time of all processes.
    processors: f64,
}

fn answer(request: &Request) -> Response {
    std::thread::sleep(ANSWER);
    let block = format!("diff\ntests/test_calc.py\ninsert\nEOF\n{GOOD}end diff\n");
    let content = match request.body.as_str() {
        body if body.contains("YES") => "YES",
        body if body.contains("end diff") => &block,
        _ => {
            "```python\nfrom pkg.calc import add\n\n\ndef test_sum():\n    assert add(2, -2) == 0\n```\n"
        }
    };
    Response::json(json!({
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    }))
    .with("content-type", "application/json")
}

struct Bench {
    folder: PathBuf,
    url: String,
}

impl Bench {
    fn compare(&self, out: &str, workers: usize, words: &[&str]) -> Result<Seconds, Failure> {
        let names = testwright_agent::approaches::ALL.iter().map(|a| a.name);
        let names: Vec<&str> = names.collect();
        let (start, busy) = (Instant::now(), processor_seconds()?);
        let mut child = Command::new(env!("CARGO_BIN_EXE_testwright"))
            .arg("compare")
            .args(["--approaches", &names.join(","), "--models", "m"])
            .arg("--dataset")
            .arg(self.folder.join("dataset.jsonl"))
            .arg("--repositories")
            .arg(self.folder.join("repositories/{owner}+{name}"))
            .args(["--workers", &workers.to_string()])
            .arg("--out")
            .arg(self.folder.join(out))
            .args(words)
            .env("TESTWRIGHT_CACHE", self.folder.join("cache"))
            .env("TESTWRIGHT_MODEL_BASE_URL", &self.url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Grading starts when this file appears.
        let graded = self.folder.join(out).join("grading/results.jsonl");
        let mut of_runs = None;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if of_runs.is_none() && graded.is_file() {
                of_runs = Some(Seconds {
                    wall: start.elapsed().as_secs_f64(),
                    own: own_seconds(child.id())?,
                    processors: processor_seconds()? - busy,
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if !status.success() {
            return Err(format!("compare ended with {status}").into());
        }
        Ok(of_runs.ok_or("nothing was graded")?)
    }
}

/// Reads the CPU time of a process, without its children.
fn own_seconds(id: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let fields = stat.rsplit_once(')').ok_or("no name")?.1;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    // The kernel reports hundredths of a second, independent of its own clock.
    Ok(ticks / 100.0)
}
