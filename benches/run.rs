//! Measures the overhead of a run.
//!
//! - Time from `run` to the first model call, minus the engine's time to start a container. Target: under 1 s.
//! - Memory of the waiting loop. Target: under 60 MB.
//! - Growth of that memory relative to the trajectory on disk, over 300 steps. Target: at most 1.
//! - Time of a tool call in a container relative to `docker exec true`. Target: at most 1/50.
//!
//! Run `cargo bench --bench run`. The Docker part is skipped if no engine is available.

#[path = "../tests/it/support/server.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use server::{MockServer, Response};
use testwright_agent::agent::NotesToLog;
use testwright_agent::setup::{RepositoryLocation, Setup};
use testwright_config::settings::{Flags, Settings, Sources};
use testwright_tools::program as toolbox;

const ROUNDS: usize = 7;
const STEPS: usize = 300;
/// Steps between two samples of the memory. The first sample is skipped, because some code and buffers may be unused
/// then.
const SAMPLE: usize = 50;
const CALLS: usize = 500;
/// The file that the steps read in parts.
const LONG_FILE: &str = "long.py";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // Sandboxes run this program as their toolbox.
    if toolbox::is_invoked() {
        toolbox::main();
        return Ok(());
    }
    let scratch = tempfile::tempdir()?;
    let mut good = first_call("local", Duration::ZERO, scratch.path())?;
    match engine_start() {
        Some(start) => {
            good &= first_call("docker", start, scratch.path())?;
            good &= tool_call()?;
        }
        None => println!("docker: skipped, because no engine has testwright/python:3.11"),
    }
    good &= memory(scratch.path())?;
    std::process::exit(i32::from(!good));
}

/// Measures the time to the first model call with a cached environment.
fn first_call(sandbox: &str, engine: Duration, scratch: &Path) -> Result<bool, Failure> {
    let (server, call_times) = model(|_| json!({"content": "Nothing to add."}));
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let out = scratch.join(format!("{sandbox}-{round}"));
        let begin = Instant::now();
        let mut run = run(&server, &examples().join("slugs"), sandbox, 60, &out)?;
        let first = first_of(&call_times, &mut run, &out)?;
        run.wait()?;
        while call_times.try_recv().is_ok() {}
        // The first round builds the environment.
        if round > 0 {
            times.push(first - begin);
        }
    }
    let time = median(&mut times);
    let beyond = time.saturating_sub(engine);
    println!("{sandbox}: to the first model call, p50 {time:>10.1?}");
    println!("{sandbox}: engine alone                 {engine:>10.1?}");
    println!("{sandbox}: difference                   {beyond:>10.1?} (target: under 1 s)");
    Ok(beyond < Duration::from_secs(1))
}

/// Measures a tool call in a running container, relative to starting a program in it.
fn tool_call() -> Result<bool, Failure> {
    let mut flags = Flags::default();
    flags.set("run.sandbox", Some("docker"));
    flags.set("run.python", Some("3.11"));
    let settings = Settings::load(&Sources::of_process(flags))?;
    let place = RepositoryLocation {
        location: examples().join("slugs").to_string_lossy().into_owned(),
        revision: None,
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        let setup = Setup::new(&settings, None, Arc::new(NotesToLog)).await?;
        let (_, _, session) = setup.start_session(&place, None).await?;
        let mut execs = Vec::new();
        for _ in 0..3 * ROUNDS {
            let begin = Instant::now();
            let done = Command::new("docker")
                .args(["exec", &session.info().id, "true"])
                .status()?;
            execs.push(begin.elapsed());
            if !done.success() {
                return Err("docker exec failed".into());
            }
        }
        let arguments = json!({"path": "src/slugs/slug.py"});
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let begin = Instant::now();
            let deadline = Duration::from_secs(60);
            session
                .call("open_file", arguments.clone(), deadline)
                .await?;
            calls.push(begin.elapsed());
        }
        session.close().await?;
        let (exec, call) = (median(&mut execs), median(&mut calls));
        let ratio = exec.as_secs_f64() / call.as_secs_f64();
        println!("docker exec of `true`, p50    {exec:>10.1?}");
        println!("open_file in it, p50          {call:>10.1?}");
        println!("ratio                            1/{ratio:.0} (target: at most 1/50)");
        Ok(ratio >= 50.0)
    })
}

/// Measures the resident memory of the loop while it waits for a tool, as the trajectory grows.
fn memory(scratch: &Path) -> Result<bool, Failure> {
    let (server, call_times) = model(|step| {
        let (name, arguments) = if step % SAMPLE == 0 {
            ("run_python", json!({"code": "import time; time.sleep(3)"}))
        } else {
            (
                "open_file",
                json!({"path": LONG_FILE, "first": 1 + step * 100}),
            )
        };
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"content": null, "tool_calls": [
            {"id": format!("call-{step}"), "type": "function", "function": function}
        ]})
    });
    let out = scratch.join("memory");
    let repository = scratch.join("long");
    copy(&examples().join("slugs"), &repository)?;
    let line = "x = 'a line of code as long as lines of code are'\n";
    std::fs::write(repository.join(LONG_FILE), line.repeat(100 * (STEPS + 1)))?;
    let mut run = run(&server, &repository, "local", STEPS, &out)?;
    let mut samples = Vec::new();
    let mut idle = 0;
    for step in 1..=STEPS {
        first_of(&call_times, &mut run, &out)?;
        if step % SAMPLE == 0 {
            std::thread::sleep(Duration::from_millis(1500));
            // Only private pages count, because pages of the program's file are shared and can be dropped.
            samples.push((
                std::fs::metadata(out.join("trajectory.jsonl"))?.len(),
                memory_of(run.id(), "RssAnon:")?,
            ));
            idle = memory_of(run.id(), "VmRSS:")?;
        }
    }
    run.wait()?;
    let ratio = slope(&samples[1..]);
    println!(
        "memory of the waiting loop    {:>10.1} MB (target: under 60 MB)",
        mega(idle)
    );
    for (trajectory, memory) in &samples {
        println!(
            "trajectory {:>6.2} MB, memory {:>6.2} MB",
            mega(*trajectory),
            mega(*memory)
        );
    }
    println!("growth relative to trajectory {ratio:>9.2} (target: at most 1)");
    Ok(idle < 60_000_000 && ratio <= 1.0)
}

/// Starts a model service that answers request number n with `reply(n)` and sends the time of each request.
fn model(reply: impl Fn(usize) -> Value + Send + 'static) -> (MockServer, Receiver<Instant>) {
    let (tell, call_times) = channel();
    let count = std::cell::Cell::new(0);
    let server = MockServer::start(move |request| {
        // The receiver is gone when the measurement is over.
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
    (server, call_times)
}

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let done = Command::new("cp").arg("-r").arg(from).arg(to).status()?;
    if !done.success() {
        return Err(format!("{} could not be copied", from.display()).into());
    }
    Ok(())
}

fn run(
    server: &MockServer,
    repository: &Path,
    sandbox: &str,
    steps: usize,
    out: &Path,
) -> Result<Child, Failure> {
    Ok(Command::new(env!("CARGO_BIN_EXE_testwright"))
        .arg("run")
        .arg(examples().join("issue.md"))
        .arg("--repo")
        .arg(repository)
        .args(["--model", "bench", "--python", "3.11", "--sandbox", sandbox])
        .args(["--max-steps", &steps.to_string()])
        .arg("--out")
        .arg(out)
        .env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", server.url))
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(out.with_extension("log"))?)
        .spawn()?)
}

/// Waits for the next request and returns its time. Fails if the run ended instead.
fn first_of(
    call_times: &Receiver<Instant>,
    run: &mut Child,
    out: &Path,
) -> Result<Instant, Failure> {
    loop {
        if let Ok(at) = call_times.recv_timeout(Duration::from_millis(200)) {
            return Ok(at);
        }
        if let Some(status) = run.try_wait()? {
            let log = std::fs::read_to_string(out.with_extension("log"))?;
            return Err(format!("the run ended too early ({status}):\n{log}").into());
        }
    }
}

/// Measures how long the engine takes to start a container of the base image.
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

/// Reads a line of the kernel's process status, in bytes.
fn memory_of(process: u32, line: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kilobytes: u64 = status
        .lines()
        .find_map(|entry| entry.strip_prefix(line))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .ok_or("no such line")?
        .trim()
        .parse()?;
    Ok(kilobytes * 1024)
}

/// Returns the growth of memory with the trajectory: the median slope between all pairs of samples (Theil-Sen).
///
/// Single samples vary because of heap fragmentation.
fn slope(samples: &[(u64, u64)]) -> f64 {
    let mut slopes = Vec::new();
    for (at, &(x, y)) in samples.iter().enumerate() {
        for &(later_x, later_y) in &samples[at + 1..] {
            slopes.push((later_y as f64 - y as f64) / (later_x as f64 - x as f64));
        }
    }
    slopes.sort_by(f64::total_cmp);
    slopes[slopes.len() / 2]
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
