//! A sandbox that runs cases one after another, and the toolbox in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use testwright_sandboxes::coverage::Coverage as Package;
use testwright_sandboxes::sandbox::Result;
use testwright_sandboxes::starting::retry_start;
use testwright_sandboxes::{Command, Sandbox, SandboxError};
use testwright_tools::cases::{CaseAnswer, CaseRequest, CaseRun, Settings, StatementsAnswer};
use testwright_tools::coverage::Statements;
use testwright_tools::program as toolbox;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::CaseEnvironment;
use crate::harness::run_config;

/// Extra time to wait for an answer, beyond the timeouts of its runs.
const GRACE: Duration = Duration::from_secs(60);
/// Timeout for parsing all files of a large repository.
const STATEMENTS_TIMEOUT: Duration = Duration::from_secs(660);
/// Maximum bytes of an answer. The sandbox is untrusted and could exhaust the memory of this process.
const MAX_ANSWER_BYTES: u64 = 128 << 20;

pub(super) struct Worker {
    sandbox: Box<dyn Sandbox>,
    toolbox: Toolbox,
}

/// A running toolbox.
struct Toolbox {
    requests: Box<dyn AsyncWrite + Send + Unpin>,
    answers: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    exit: BoxFuture<'static, Result<i32>>,
}

/// The toolbox was killed or stopped answering; its sandbox can no longer be used.
pub(super) struct WorkerLost(pub String);

impl WorkerLost {
    pub(super) fn error(self) -> SandboxError {
        SandboxError::dead(format!("run cases in the sandbox: {}", self.0))
    }
}

impl Worker {
    pub(super) async fn start(
        place: &CaseEnvironment,
        warm: bool,
        package: Option<&Package>,
    ) -> Result<Worker> {
        let start = || async {
            let sandbox = place.start().await?;
            match Worker::prepare(place, warm, package, sandbox.as_ref()).await {
                Ok(toolbox) => Ok(Worker { sandbox, toolbox }),
                Err(error) => {
                    sandbox.stop().await?;
                    Err(error)
                }
            }
        };
        retry_start(start).await
    }

    async fn prepare(
        place: &CaseEnvironment,
        warm: bool,
        package: Option<&Package>,
        sandbox: &dyn Sandbox,
    ) -> Result<Toolbox> {
        let paths = &sandbox.info().paths;
        let environment = &place.environment;
        let config = run_config(environment, paths, GRACE)?;
        let program = paths.toolbox.join(toolbox::NAME);
        sandbox.upload_file(&program, &place.toolbox, 0o755).await?;
        if environment.needs_preparation() {
            let confined = config.confine(&program).map_err(system)?;
            environment.prepare_tests(sandbox, &confined).await?;
        }
        let coverage = match package {
            Some(package) => Some(package.unpack_into(sandbox).await?),
            None => None,
        };
        let settings = Settings {
            config,
            temporary: Some(paths.temporary.clone()),
            warm,
            coverage,
        };
        let mut toolbox = open(sandbox, &program).await?;
        send(&mut toolbox.requests, &settings).await?;
        Ok(toolbox)
    }

    /// Runs a case once. The outer error is a failure of the machine.
    pub(super) async fn run(
        &mut self,
        run: CaseRun,
    ) -> Result<std::result::Result<CaseAnswer, WorkerLost>> {
        // The toolbox may repeat the run in a new process.
        let time = Duration::from_millis(run.milliseconds) * 2 + GRACE;
        self.ask(&CaseRequest::Run(run), time).await
    }

    pub(super) async fn statements(
        &mut self,
        files: &[String],
    ) -> Result<BTreeMap<String, Statements>> {
        let request = CaseRequest::Statements {
            files: files.to_vec(),
        };
        let answer: StatementsAnswer = self
            .ask(&request, STATEMENTS_TIMEOUT)
            .await?
            .map_err(WorkerLost::error)?;
        Ok(answer.files)
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.sandbox.stop().await
    }

    async fn ask<T: DeserializeOwned>(
        &mut self,
        request: &CaseRequest,
        time: Duration,
    ) -> Result<std::result::Result<T, WorkerLost>> {
        if send(&mut self.toolbox.requests, request).await.is_err() {
            return Ok(Err(self.lost().await));
        }
        let mut line = Vec::new();
        let mut bounded = (&mut self.toolbox.answers).take(MAX_ANSWER_BYTES);
        let read = bounded.read_until(b'\n', &mut line);
        let Ok(read) = tokio::time::timeout(time, read).await else {
            let seconds = time.as_secs();
            return Ok(Err(WorkerLost(format!(
                "the toolbox did not answer within {seconds} s"
            ))));
        };
        if read.is_err() || line.last() != Some(&b'\n') {
            return Ok(Err(self.lost().await));
        }
        let answer = serde_json::from_slice(&line);
        Ok(answer.map_err(|error| WorkerLost(format!("invalid answer of the toolbox: {error}"))))
    }

    /// Describes how the toolbox ended.
    async fn lost(&mut self) -> WorkerLost {
        match tokio::time::timeout(Duration::from_secs(5), &mut self.toolbox.exit).await {
            Ok(Ok(code)) if code >= 128 => {
                WorkerLost(format!("the toolbox was killed by signal {}", code - 128))
            }
            Ok(Ok(code)) => WorkerLost(format!("the toolbox ended with exit status {code}")),
            Ok(Err(error)) => WorkerLost(error.to_string()),
            Err(_) => WorkerLost("the toolbox wrote too much output".to_owned()),
        }
    }
}

async fn open(sandbox: &dyn Sandbox, program: &Path) -> Result<Toolbox> {
    let argv = [program.to_string_lossy().into_owned(), "cases".to_owned()];
    let process = sandbox.spawn(&Command::new(argv)).await?;
    let mut errors = process.stderr;
    // Discard stderr, so that the process never blocks on a full pipe.
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
    });
    Ok(Toolbox {
        requests: process.stdin,
        answers: BufReader::new(process.stdout),
        exit: process.exit,
    })
}

async fn send(
    requests: &mut (dyn AsyncWrite + Send + Unpin),
    request: &impl Serialize,
) -> Result<()> {
    let mut line = serde_json::to_vec(request).map_err(system)?;
    line.push(b'\n');
    requests.write_all(&line).await?;
    requests.flush().await?;
    Ok(())
}

fn system(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::system(error.to_string())
}
