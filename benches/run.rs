//! What a run costs besides its model and its tests: the time from `run` to the first model call, beyond what the engine
//! itself needs to start a container (wanted: under 1 s); the memory that the waiting loop takes (wanted: under 60 MB);
//! and what 300 steps add to it, as a part of the trajectory's own size (wanted: at most 1).
//!
//! `cargo bench --bench run`. Without a Docker engine that part is left out.

#[path = "../tests/it/server.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use server::{Response, Server};

const ROUNDS: usize = 7;
const STEPS: usize = 300;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let scratch = tempfile::tempdir()?;
    let mut good = first_call("local", Duration::ZERO, scratch.path())?;
    match engine_start() {
        Some(start) => good &= first_call("docker", start, scratch.path())?,
        None => println!("docker: skipped, no engine with testwright/python:3.11"),
    }
    good &= memory(scratch.path())?;
    std::process::exit(i32::from(!good));
}

/// Time to the first model call, on a warm environment.
fn first_call(sandbox: &str, engine: Duration, scratch: &Path) -> Result<bool, Failure> {
    let (server, asked) = model(|_| json!({"content": "Nothing to add."}));
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let out = scratch.join(format!("{sandbox}-{round}"));
        let begin = Instant::now();
        let mut run = run(&server, sandbox, 60, &out)?;
        let first = first_of(&asked, &mut run, &out)?;
        run.wait()?;
        while asked.try_recv().is_ok() {}
        // The first round makes the environment.
        if round > 0 {
            times.push(first - begin);
        }
    }
    let time = median(&mut times);
    let beyond = time.saturating_sub(engine);
    println!("{sandbox}: to the first model call, p50 {time:>10.1?}");
    println!("{sandbox}: the engine's own part        {engine:>10.1?}");
    println!("{sandbox}: beyond it                    {beyond:>10.1?} (wanted: under 1 s)");
    Ok(beyond < Duration::from_secs(1))
}

/// Resident memory at the first model call and at the last of many.
fn memory(scratch: &Path) -> Result<bool, Failure> {
    let (server, asked) = model(|step| {
        let arguments = json!({"path": "src/slugs/slug.py", "line": 1 + step % 30}).to_string();
        json!({"content": null, "tool_calls": [{"id": format!("call-{step}"), "type": "function",
            "function": {"name": "open_file", "arguments": arguments}}]})
    });
    let out = scratch.join("memory");
    let mut run = run(&server, "local", STEPS, &out)?;
    first_of(&asked, &mut run, &out)?;
    let idle = resident(run.id())?;
    let mut last = idle;
    for _ in 1..STEPS {
        first_of(&asked, &mut run, &out)?;
        last = resident(run.id()).unwrap_or(last);
    }
    run.wait()?;
    let own = std::fs::metadata(out.join("trajectory.jsonl"))?.len();
    let added = last.saturating_sub(idle);
    let ratio = added as f64 / own as f64;
    println!(
        "memory at the first call           {:>10.1} MB (wanted: under 60 MB)",
        mega(idle)
    );
    println!(
        "added by {STEPS} steps                 {:>10.1} MB",
        mega(added)
    );
    println!("the trajectory itself              {:>10.1} MB", mega(own));
    println!("ratio                              {ratio:>10.2} (wanted: at most 1)");
    Ok(idle < 60_000_000 && ratio <= 1.0)
}

/// An endpoint whose replies say what `reply` makes of the number of the request; it tells when each came in.
fn model(reply: impl Fn(usize) -> Value + Send + 'static) -> (Server, Receiver<Instant>) {
    let (tell, asked) = channel();
    let count = std::cell::Cell::new(0);
    let server = Server::start(move |request| {
        // Nobody listens any more when the measurement is over.
        let _ = tell.send(Instant::now());
        count.set(count.get() + 1);
        let mut message = reply(count.get());
        message["role"] = json!("assistant");
        Response::json(json!({
            "id": "1", "object": "chat.completion", "created": 0, "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": request.body.len() / 4, "completion_tokens": 10, "total_tokens": 10},
        }))
        .with("content-type", "application/json")
    });
    (server, asked)
}

fn run(server: &Server, sandbox: &str, steps: usize, out: &Path) -> Result<Child, Failure> {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    Ok(Command::new(env!("CARGO_BIN_EXE_testwright"))
        .arg("run")
        .arg(examples.join("issue.md"))
        .arg("--repo")
        .arg(examples.join("slugs"))
        .args(["--model", "bench", "--python", "3.11", "--sandbox", sandbox])
        .args(["--max-steps", &steps.to_string()])
        .arg("--out")
        .arg(out)
        .env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", server.url))
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(out.with_extension("log"))?)
        .spawn()?)
}

/// When the next request came in; an error where the run ended instead.
fn first_of(asked: &Receiver<Instant>, run: &mut Child, out: &Path) -> Result<Instant, Failure> {
    loop {
        if let Ok(at) = asked.recv_timeout(Duration::from_millis(200)) {
            return Ok(at);
        }
        if let Some(status) = run.try_wait()? {
            let log = std::fs::read_to_string(out.with_extension("log"))?;
            return Err(format!("the run ended too early ({status}):\n{log}").into());
        }
    }
}

/// What the engine needs to start a container of the base image.
fn engine_start() -> Option<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let started = Command::new("docker")
            .args(["run", "--detach", "--network", "none", "--pull", "never"])
            .args(["testwright/python:3.11", "sleep", "60"])
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        times.push(begin.elapsed());
        let id = String::from_utf8(started.stdout).ok()?;
        Command::new("docker")
            .args(["rm", "--force", id.trim()])
            .stdout(Stdio::null())
            .status()
            .ok()?;
    }
    Some(median(&mut times))
}

/// Bytes of resident memory.
fn resident(process: u32) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kilobytes: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .ok_or("no VmRSS")?
        .trim()
        .parse()?;
    Ok(kilobytes * 1024)
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
