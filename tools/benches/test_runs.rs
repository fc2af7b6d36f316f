//! Measures repeated and submitted test runs, as ratios to a run in a new process.
//!
//! `cargo bench -p testwright-tools --bench test_runs -- FOLDER PYTHON TEST`, where FOLDER is a git checkout whose
//! tests PYTHON can run, and TEST is a node id in it. The benchmark adds a line to the file of TEST while it runs. It
//! prints
//!
//! - repeated: later `run_pytest` calls of TEST, relative to the first call in a new toolbox;
//! - edited: a `run_pytest` call after an edit of the test's file, relative to the same first call;
//! - submit: `submit` of a failing test in that file, relative to a first run of the whole file.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testwright_tools::config::Config;

/// Number of toolboxes measured one after the other; each makes `REPEATED_RUNS` repeated runs.
const ROUNDS: usize = 3;
const REPEATED_RUNS: usize = 5;
/// Time for a server that was started in the background to load everything.
const STARTUP_TIME: Duration = Duration::from_secs(20);

const FAILING: &str = "\n\ndef test_that_fails_in_a_bench():\n    assert 0\n";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let [folder, python, test] = arguments.as_slice() else {
        println!("give FOLDER PYTHON TEST");
        return Ok(());
    };
    let folder = Path::new(folder).canonicalize()?;
    let file = test.split("::").next().unwrap_or(test);
    let path = folder.join(file);
    let source = std::fs::read_to_string(&path)?;
    let scratch = tempfile::tempdir()?;
    let base_archive = scratch.path().join("base.tar");
    let archive = std::fs::File::create(&base_archive)?;
    let git = Command::new("git")
        .arg("-C")
        .arg(&folder)
        .args(["archive", "HEAD"])
        .stdout(archive)
        .status()?;
    if !git.success() {
        return Err("FOLDER is not a git checkout".into());
    }
    let config = |name: &str| Config {
        workspace: folder.clone(),
        base_archive: base_archive.clone(),
        scratch: scratch.path().join(name),
        private: None,
        python: PathBuf::from(python),
        env: Default::default(),
        runner: Default::default(),
        test_seconds: 600,
        processors: None,
        wanted: None,
    };
    let measured = (0..ROUNDS)
        .map(|round| {
            std::fs::write(&path, &source)?;
            one_round(&config(&round.to_string()), test, file, &path, &source)
        })
        .collect::<Result<Vec<_>, Box<dyn Error>>>();
    std::fs::write(&path, &source)?;
    let measured = measured?;
    let median = |of: fn(&Round) -> f64| {
        let mut all: Vec<f64> = measured.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    println!(
        "repeated / cold = {:.2}",
        median(|round| round.repeated / round.cold)
    );
    println!(
        "edited / cold = {:.2}",
        median(|round| round.edited / round.cold)
    );
    println!(
        "submit / cold run of the file = {:.2}",
        median(|round| round.submit / round.cold_file)
    );
    println!(
        "in seconds: cold {:.2}, repeated {:.2}, edited {:.2}, file {:.2}, submit {:.2}",
        median(|round| round.cold),
        median(|round| round.repeated),
        median(|round| round.edited),
        median(|round| round.cold_file),
        median(|round| round.submit)
    );
    Ok(())
}

struct Round {
    cold: f64,
    repeated: f64,
    edited: f64,
    cold_file: f64,
    submit: f64,
}

fn one_round(
    config: &Config,
    test: &str,
    file: &str,
    path: &Path,
    source: &str,
) -> Result<Round, Box<dyn Error>> {
    let one = json!({ "tests": [test] });
    let mut toolbox = Toolbox::start(config)?;
    let cold = toolbox.seconds("run_pytest", &one)?;
    std::thread::sleep(STARTUP_TIME);
    let mut repeated: Vec<f64> = (0..REPEATED_RUNS)
        .map(|_| toolbox.seconds("run_pytest", &one))
        .collect::<Result<_, _>>()?;
    repeated.sort_by(f64::total_cmp);
    std::fs::write(path, format!("{source}{FAILING}"))?;
    let edited = toolbox.seconds("run_pytest", &one)?;
    drop(toolbox);
    let alone = |tool: &str, arguments: Value| Toolbox::start(config)?.seconds(tool, &arguments);
    let cold_file = alone("run_pytest", json!({ "tests": [file] }))?;
    let submit = alone("submit", json!({}))?;
    Ok(Round {
        cold,
        repeated: repeated[REPEATED_RUNS / 2],
        edited,
        cold_file,
        submit,
    })
}

/// A tool server, driven over its stdio.
struct Toolbox {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Toolbox {
    fn start(config: &Config) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolbox"))
            .args(["serve", "--config", &serde_json::to_string(config)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut toolbox = Toolbox {
            child,
            stdin,
            stdout,
        };
        let client = json!({ "name": "bench", "version": "0" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        toolbox.request("initialize", &hello)?;
        writeln!(
            toolbox.stdin,
            "{}",
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
        )?;
        // Wait for the response: the server reads the workspace before the first call.
        toolbox.seconds("show_patch", &json!({}))?;
        Ok(toolbox)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Box<dyn Error>> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.stdin, "{request}")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Returns how many seconds a call takes, or an error if the tool refuses it.
    fn seconds(&mut self, tool: &str, arguments: &Value) -> Result<f64, Box<dyn Error>> {
        let started = Instant::now();
        let answer = self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )?;
        if answer["result"]["isError"] == true {
            return Err(answer["result"]["content"][0]["text"].to_string().into());
        }
        Ok(started.elapsed().as_secs_f64())
    }
}

impl Drop for Toolbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
