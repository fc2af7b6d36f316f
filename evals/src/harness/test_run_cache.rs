//! Runs tests in their own sandbox and caches the records by content: the same environment, files, tests and grader
//! never run twice. Records are written atomically, so an incomplete one is never read.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::{File, FileKind, Files};
use testwright_sandboxes::starting::retry_start;
use testwright_sandboxes::{Command, Process, Sandbox, SandboxError, coverage};
use testwright_tools::DIGEST;
use testwright_tools::coverage::Measure;
use testwright_tools::outcomes::report::TestReport;
use testwright_tools::program as toolbox;
use testwright_tools::runners::Options;
use testwright_tools::test_run::{Request, TestRunResult};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::changed_lines::Lines;
use super::instance::CodeState;
use super::run_config::run_config;
use super::timeline::{Activity, Timeline};
use super::{Harness, files, offline, traces};
use crate::folder;
use testwright_sandboxes::hex::hex;

/// Extra time to wait for an answer after the run's own deadline.
const GRACE: Duration = Duration::from_secs(60);
/// Maximum bytes of the error output of a failed toolbox.
const MAX_ERROR_BYTES: usize = 2_000;
/// Maximum bytes of an answer, and of the error output. Thousands of failing tests need a small part of it. The sandbox
/// is untrusted and could exhaust the memory of this process.
const MAX_ANSWER_BYTES: u64 = 128 << 20;
/// Path of a control test, which runs if the tests of a prediction do not.
const CONTROL: &str = "test_testwright_control.py";

/// Specification of a test run.
#[derive(Clone)]
pub(super) struct TestRun<'a> {
    pub state: &'a CodeState,
    /// Files that replace or add to the files of the state.
    pub files: &'a Files,
    /// Node ids or files.
    pub ids: Vec<String>,
    /// Files whose executed lines are recorded.
    pub measure: Vec<String>,
    /// Whether to count executions, too (see [`Measure::counted`]).
    pub counted: bool,
    /// Lines to wait for: measuring ends when they have run. If empty, measuring continues to the end.
    pub until: Lines,
    /// Whether the files come from a prediction, and are therefore untrusted.
    pub of_prediction: bool,
    pub hash_seed: u32,
    /// Activity that the time of the run counts towards.
    pub part: Activity,
}

/// The toolbox was killed or stopped before it could answer.
pub(super) struct AbnormalExit(String);

impl AbnormalExit {
    pub(super) fn error(self) -> SandboxError {
        SandboxError::dead(format!("run the toolbox in the sandbox: {}", self.0))
    }
}

/// The answer of a run, and why it has no outcomes, if so.
type Execution = (TestRunResult, Option<String>);

/// Returns the result of a run that ended without information on the tests.
fn ended_run(why: String) -> Execution {
    let report = TestReport {
        printed: why.clone(),
        ..TestReport::default()
    };
    let coverage = None;
    (TestRunResult { report, coverage }, Some(why))
}

/// Record of a run, either new or from the cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub answer: TestRunResult,
    /// Why no outcomes are known: the tests prevented the test process from reporting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Wall time of the run, including the start of the sandbox.
    pub seconds: f64,
    #[serde(skip)]
    pub cached: bool,
}

impl RunRecord {
    /// Returns the record of a run without tests.
    pub(super) fn of_nothing() -> RunRecord {
        RunRecord {
            answer: TestRunResult {
                report: Default::default(),
                coverage: Some(Default::default()),
            },
            ended: None,
            seconds: 0.0,
            cached: true,
        }
    }
}

/// Key of a record, from everything the run depends on.
#[derive(Default)]
pub(super) struct RecordKey(Sha256);

impl RecordKey {
    pub(super) fn new(harness: &Harness) -> RecordKey {
        let mut key = RecordKey::default();
        key.add(super::RUNS.as_bytes());
        key.add(DIGEST.as_bytes());
        key.add(harness.backend.layout().as_bytes());
        key
    }

    pub(super) fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub(super) fn state(&mut self, state: &CodeState) {
        self.add(state.environment.saved.as_bytes());
        // The package index may have changed when a state is rebuilt under the same name.
        self.add(state.environment.packages.join(" ").as_bytes());
        self.files(&state.files);
        for (path, text) in &state.shown {
            self.add(path.as_bytes());
            self.add(text.as_bytes());
        }
    }

    pub(super) fn files(&mut self, files: &Files) {
        self.add(&(files.len() as u64).to_le_bytes());
        for (path, file) in files {
            self.add(path.as_bytes());
            match file {
                Some(file) => {
                    self.add(format!("{:?}", file.kind).as_bytes());
                    self.add(&file.content);
                }
                None => self.add(b"deleted"),
            }
        }
    }

    /// Returns the first bytes of the key as a number.
    pub(super) fn number(self) -> u64 {
        let digest = self.0.finalize();
        digest
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Returns the key in hexadecimal digits.
    pub(super) fn digest(self) -> String {
        hex(&self.0.finalize())
    }

    pub(super) fn path(self, folder: &Path) -> PathBuf {
        let digest = self.digest();
        folder.join(&digest[..2]).join(format!("{digest}.json"))
    }
}

impl Harness {
    pub(super) async fn run(
        &self,
        run: &TestRun<'_>,
        timeline: &Timeline<'_>,
    ) -> Result<RunRecord, SandboxError> {
        if run.ids.is_empty() {
            return Ok(RunRecord::of_nothing());
        }
        let record = self.record(run);
        if let Some(ran) = read::<RunRecord>(&record).await
            && (!ran.answer.report.timed_out && ran.ended.is_none()
                || self.is_from_this_harness(&record))
        {
            return Ok(RunRecord {
                cached: true,
                ..ran
            });
        }
        // Waiting for a slot does not count.
        let executed = async {
            let begun = Instant::now();
            let (answer, ended) = self.execute(run).await?;
            Ok::<_, SandboxError>(RunRecord {
                answer,
                ended,
                seconds: begun.elapsed().as_secs_f64(),
                cached: false,
            })
        };
        let ran = timeline.run(run.part, executed).await?;
        write(&record, &ran).await?;
        Ok(ran)
    }

    /// Returns the path of a run's record. Its key includes everything the run depends on.
    fn record(&self, run: &TestRun<'_>) -> PathBuf {
        let mut key = RecordKey::new(self);
        key.state(run.state);
        key.add(format!("{:?} {:?}", self.limits, self.test_time).as_bytes());
        // The kind is omitted for pytest, so that existing keys stay valid.
        let kind = &run.state.environment.recipe.runner.kind;
        if kind != "pytest" {
            key.add(kind.as_bytes());
        }
        key.add(&run.hash_seed.to_le_bytes());
        key.add(&(run.ids.len() as u64).to_le_bytes());
        for text in run.ids.iter().chain(&run.measure) {
            key.add(text.as_bytes());
        }
        if run.counted {
            key.add(b"counted");
        }
        for (path, lines) in &run.until {
            key.add(format!("{path} {lines:?}").as_bytes());
        }
        key.files(run.files);
        key.path(&self.cache.join("runs"))
    }

    /// Returns whether this harness wrote the record. A run that timed out or crashed earlier gets another chance.
    fn is_from_this_harness(&self, record: &Path) -> bool {
        let written = std::fs::metadata(record).and_then(|about| about.modified());
        written.is_ok_and(|at| at >= self.begun)
    }

    /// Executes a run. If its tests repeatedly cannot run but the control test can, the prediction is at fault.
    /// Otherwise a wrong prediction could avoid being counted.
    async fn execute(&self, run: &TestRun<'_>) -> Result<Execution, SandboxError> {
        let first = match self.execute_once(run).await? {
            Ok(end) => return Ok(end),
            Err(error) => error,
        };
        if !run.of_prediction || !matches!(first.kind, ErrorKind::Dead | ErrorKind::System) {
            return Err(first);
        }
        let again = match self.execute_once(run).await? {
            Ok(end) => return Ok(end),
            Err(error) => error,
        };
        let test = File {
            content: b"def test_runs():\n    pass\n".to_vec(),
            kind: FileKind::Plain,
        };
        let control = TestRun {
            files: &Files::from([(CONTROL.to_owned(), Some(test))]),
            ids: vec![CONTROL.to_owned()],
            measure: Vec::new(),
            counted: false,
            until: Lines::new(),
            of_prediction: false,
            ..run.clone()
        };
        match self.execute_once(&control).await {
            Ok(Ok(_)) => Ok(ended_run(again.to_string())),
            _ => Err(first),
        }
    }

    /// Executes a run once in its own sandbox. The outer error means that the sandbox did not start.
    async fn execute_once(
        &self,
        run: &TestRun<'_>,
    ) -> Result<Result<Execution, SandboxError>, SandboxError> {
        let sandbox = self.start(&run.state.environment.saved).await?;
        let end = match self.in_sandbox(run, sandbox.as_ref()).await {
            Ok(Ok(answer)) => Ok((answer, None)),
            // Tests run as the same user as the toolbox and can kill it, but a repository's own tests do not.
            Ok(Err(ended)) if run.of_prediction && sandbox.health().await.is_ok() => {
                Ok(ended_run(ended.0))
            }
            Ok(Err(ended)) => Err(ended.error()),
            Err(error) => Err(error),
        };
        let stopped = sandbox.stop().await;
        Ok(end.and_then(|end| stopped.map(|()| end)))
    }

    pub(super) async fn start(&self, saved: &str) -> Result<Box<dyn Sandbox>, SandboxError> {
        let spec = offline(saved, &self.limits, &self.purpose);
        retry_start(|| self.backend.start(&spec)).await
    }

    async fn in_sandbox(
        &self,
        run: &TestRun<'_>,
        sandbox: &dyn Sandbox,
    ) -> Result<Result<TestRunResult, AbnormalExit>, SandboxError> {
        let environment = &run.state.environment;
        files::write_files(sandbox, &run.state.files).await?;
        if environment.recipe.git {
            // The commit must have the text that files show, or `git diff` would tell which files hide their code.
            let shown = run.state.shown_files();
            files::write_files(sandbox, &shown).await?;
            traces::commit_side(sandbox, &run.state.files).await?;
            let mut hidden = run.state.files.clone();
            hidden.retain(|path, _| shown.contains_key(path));
            files::write_files(sandbox, &hidden).await?;
        }
        files::write_files(sandbox, run.files).await?;
        let changed = run.state.files.keys().chain(run.files.keys());
        let changed: Vec<&str> = changed.map(String::as_str).collect();
        traces::remove_traces(sandbox, environment, &changed, &run.state.shown).await?;
        let paths = &sandbox.info().paths;
        let config = run_config(environment, paths, self.test_time)?;
        if environment.needs_preparation() {
            let toolbox = self.put_toolbox(sandbox).await?;
            let confined = config.confine(&toolbox);
            let confined = confined.map_err(|e| SandboxError::system(e.to_string()))?;
            environment.prepare_tests(sandbox, &confined).await?;
        }
        let mut measure = None;
        if !run.measure.is_empty() {
            let version = &environment.python_version;
            // If coverage.py does not support this Python, the tests run without coverage.
            match coverage::package(version, &self.build).await {
                Ok(package) => {
                    measure = Some(Measure {
                        package: package.unpack_into(sandbox).await?,
                        files: run.measure.clone(),
                        counted: run.counted,
                        until: run.until.clone(),
                        ..Measure::default()
                    });
                }
                Err(error) if error.kind == ErrorKind::Input => {}
                Err(error) => return Err(error),
            }
        }
        let request = Request {
            config,
            ids: run.ids.clone(),
            seconds: self.test_time.as_secs(),
            options: Options {
                hash_seed: run.hash_seed,
                user: other_user(run.hash_seed),
                ..Options::with_deadline(Instant::now())
            },
            coverage: measure,
        };
        self.ask(sandbox, "test", &request, self.test_time).await
    }

    async fn put_toolbox(&self, sandbox: &dyn Sandbox) -> Result<PathBuf, SandboxError> {
        let program = sandbox.info().paths.toolbox.join(toolbox::NAME);
        sandbox.upload_file(&program, &self.toolbox, 0o755).await?;
        Ok(program)
    }

    /// Runs the toolbox once: sends a request and returns its answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        sandbox: &dyn Sandbox,
        command: &str,
        request: &impl Serialize,
        time: Duration,
    ) -> Result<Result<T, AbnormalExit>, SandboxError> {
        let request = encode(request)?;
        let program = self.put_toolbox(sandbox).await?;
        let argv = [program.to_string_lossy().into_owned(), command.to_owned()];
        let Process {
            mut stdin,
            mut stdout,
            mut stderr,
            exit,
        } = sandbox.spawn(&Command::new(argv)).await?;
        let work = async {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let all = tokio::try_join!(
                async {
                    let written = async {
                        stdin.write_all(&request).await?;
                        stdin.shutdown().await
                    };
                    let written = written.await;
                    drop(stdin);
                    Ok(written)
                },
                bounded(&mut stdout, &mut out),
                bounded(&mut stderr, &mut err),
            );
            let (written, read, errors) = match all {
                Ok(all) => all,
                Err(TooMuch) => {
                    let most = MAX_ANSWER_BYTES >> 20;
                    return Ok(Err(AbnormalExit(format!("it wrote more than {most} MiB"))));
                }
            };
            let code = exit.await?;
            if code == 0 {
                written?;
                read?;
                errors?;
                return serde_json::from_slice(&out).map(Ok).map_err(|error| {
                    SandboxError::dead(format!("invalid answer of the toolbox: {error}"))
                });
            }
            if code >= 128 {
                return Ok(Err(AbnormalExit(format!(
                    "it was killed by signal {}",
                    code - 128
                ))));
            }
            let text = String::from_utf8_lossy(&err);
            let end: String = text.trim().chars().take(MAX_ERROR_BYTES).collect();
            Err(SandboxError::dead(format!(
                "run the toolbox in the sandbox (exit code {code}): {end}"
            )))
        };
        let late = |_| {
            let seconds = (time + GRACE).as_secs();
            Ok(Err(AbnormalExit(format!(
                "it did not answer within {seconds} s"
            ))))
        };
        let answer = tokio::time::timeout(time + GRACE, work).await;
        answer.unwrap_or_else(late)
    }
}

/// Returns the name of another user for a run with a random hash seed; `None` for the usual name.
fn other_user(hash_seed: u32) -> Option<String> {
    // The first runs have the hash seeds 0 and 1.
    (hash_seed > 1).then(|| format!("u{hash_seed:x}"))
}

/// The output exceeded [`MAX_ANSWER_BYTES`].
struct TooMuch;

async fn bounded(
    from: &mut (impl AsyncRead + Unpin),
    into: &mut Vec<u8>,
) -> Result<std::io::Result<()>, TooMuch> {
    let read = from.take(MAX_ANSWER_BYTES + 1).read_to_end(into).await;
    if into.len() as u64 > MAX_ANSWER_BYTES {
        return Err(TooMuch);
    }
    Ok(read.map(drop))
}

pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, SandboxError> {
    serde_json::to_vec(value).map_err(|e| SandboxError::system(e.to_string()))
}

/// Reads a record; `None` if it is missing or incomplete.
pub(super) async fn read<T: DeserializeOwned>(record: &Path) -> Option<T> {
    let text = tokio::fs::read(record).await.ok()?;
    serde_json::from_slice(&text).ok()
}

pub(super) async fn write(record: &Path, value: &impl Serialize) -> Result<(), SandboxError> {
    let folder = record.parent().unwrap_or(record);
    tokio::fs::create_dir_all(folder).await?;
    let bytes = encode(value)?;
    folder::write_atomically(record, 0o600, |aside| aside.write_all(&bytes))?;
    Ok(())
}
