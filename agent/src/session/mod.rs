//! A sandbox in which the toolbox runs, with calls to its tools.
//!
//! A failure here is never the model's fault: a [`SandboxError`] ends the run as `infrastructure`. A tool's
//! refusal is an ordinary answer with `refused` set. If the toolbox ends while code of the repository or the
//! model runs, that is also an ordinary answer. The toolbox is then restarted in a copy of the files, where
//! nothing else runs.

mod connection;
mod line_limit;
mod standby;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::starting::retry_start;
use testwright_sandboxes::{
    Backend, Limits, Sandbox, SandboxError, SandboxInfo, SandboxSource, Spec,
};
use testwright_tools::config::{Config, Runner, RunnerKind, WantedLines};
use testwright_tools::process::confinement::Layers;
use testwright_tools::tool::{Length, MAX_DATA_LEN};
use tokio::sync::Mutex;

#[cfg(fuzzing)]
pub use connection::call_answered_by;
pub use connection::toolbox;
pub use state::Contents;

use connection::Connection;
use standby::StandbySandboxes;

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    /// Answer for the model.
    pub text: String,
    /// Structured data of the answer; `null` if it has no such data.
    pub data: Value,
    /// Whether the call was refused; the text gives the reason.
    pub refused: bool,
    /// Whether the toolbox ended during this call, so that there is no result; the text says so.
    pub ended: bool,
}

impl CallAnswer {
    /// Creates the answer to a refused call.
    fn refused(text: String) -> Self {
        CallAnswer {
            text,
            data: Value::Null,
            refused: true,
            ended: false,
        }
    }
}

/// A sandbox with a running toolbox, which carries out tool calls.
pub struct Session {
    live: Mutex<Arc<ActiveSandbox>>,
    facts: SandboxInfo,
    environment: Environment,
    settings: SessionSettings,
    /// Standby sandboxes for submissions; `None` in a session that is one itself.
    fresh: Option<StandbySandboxes>,
    /// Number of times the toolbox ended while untrusted code ran.
    ended: AtomicU32,
}

/// A sandbox and the toolbox in it.
struct ActiveSandbox {
    sandbox: Box<dyn Sandbox>,
    connection: Connection,
    /// Whether the toolbox has ended.
    dead: AtomicBool,
}

/// Settings of a session besides the environment.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Limits of the sandbox.
    pub limits: Limits,
    /// Time limit of one test run in seconds.
    pub test_seconds: u64,
    /// Maximum concurrent test runs; `None` for the number of processors.
    pub processors: Option<usize>,
    /// Id of the run, for labels.
    pub run: String,
    /// Lines that tests are wanted for; `cover` reports which of them run.
    pub wanted: Option<WantedCoverage>,
}

/// Lines that should run, and the coverage.py package to measure them.
#[derive(Debug, Clone)]
pub struct WantedCoverage {
    /// coverage.py, for the Python version of the environment.
    pub package: testwright_sandboxes::coverage::Coverage,
    /// Line numbers by path, relative to the repository.
    pub lines: BTreeMap<String, BTreeSet<u32>>,
}

impl Session {
    /// Starts a sandbox without network from a prepared environment, and the toolbox in it.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox or the toolbox does not start.
    pub async fn start(
        backend: Arc<dyn Backend>,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Result<Self, SandboxError> {
        let mut session = Self::only(backend.as_ref(), environment, settings).await?;
        session.fresh = Some(StandbySandboxes::new(backend, environment, settings));
        Ok(session)
    }

    /// Starts a session without standby sandboxes for submissions. The future is boxed, so that crates that
    /// await it do not compile it again.
    fn only<'a>(
        backend: &'a dyn Backend,
        environment: &'a Environment,
        settings: &'a SessionSettings,
    ) -> BoxFuture<'a, Result<Self, SandboxError>> {
        let start = SandboxSource::Saved(environment.saved.clone());
        let spec = Spec {
            limits: settings.limits.clone(),
            ..Spec::new(start, &settings.run)
        };
        Box::pin(async move {
            retry_start(|| async {
                let sandbox = backend.start(&spec).await?;
                Self::open(sandbox, environment.clone(), settings.clone()).await
            })
            .await
        })
    }

    async fn open(
        sandbox: Box<dyn Sandbox>,
        environment: Environment,
        settings: SessionSettings,
    ) -> Result<Self, SandboxError> {
        let live = ActiveSandbox::open(sandbox, &environment, &settings).await?;
        let mut facts = live.sandbox.info().clone();
        facts
            .isolation
            .push_str(&describe_protections(&live.connection.layers));
        Ok(Session {
            live: Mutex::new(Arc::new(live)),
            facts,
            environment,
            settings,
            fresh: None,
            ended: AtomicU32::new(0),
        })
    }

    /// Returns whether tests are wanted for given lines.
    pub fn has_wanted_lines(&self) -> bool {
        self.settings.wanted.is_some()
    }

    /// Returns facts about the sandbox that was started first.
    pub fn info(&self) -> &SandboxInfo {
        &self.facts
    }

    /// Returns the environment from which it was started.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns how often the toolbox ended while code of the repository or of the model ran.
    pub fn ended_by_code(&self) -> u32 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Adds the count of a session that checked a submission of this one.
    pub fn count_ended(&self, other: &Session) {
        self.ended
            .fetch_add(other.ended_by_code(), Ordering::Relaxed);
    }

    /// Calls a tool. At the deadline the toolbox stops the tool and answers with partial results. A toolbox
    /// that does not answer soon after that is considered dead.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox or the toolbox fails, except if a tool that runs code ended the toolbox.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<CallAnswer, SandboxError> {
        if let Some(refused) = refuse_long_arguments(tool, &arguments) {
            return Ok(refused);
        }
        let live = self.live().await?;
        let runs_code = runs_code(tool);
        let called = live.connection.call(tool, arguments, deadline).await;
        if let Some(fresh) = self.fresh.as_ref().filter(|_| runs_code) {
            fresh.prepare().await;
        }
        match called {
            Err(error) if error.kind == ErrorKind::Dead => {
                // The toolbox may be gone only because the container or the engine is.
                live.sandbox.health().await?;
                live.dead.store(true, Ordering::Relaxed);
                if !runs_code {
                    return Err(error);
                }
                tracing::warn!(tool, %error, "the toolbox ended in a call");
                self.ended.fetch_add(1, Ordering::Relaxed);
                Ok(ended(tool))
            }
            called => called,
        }
    }

    /// Returns the current sandbox. If the toolbox has ended, this is a copy of the files with a new toolbox;
    /// processes left in the old sandbox end with it.
    async fn live(&self) -> Result<Arc<ActiveSandbox>, SandboxError> {
        let mut live = self.live.lock().await;
        if live.dead.load(Ordering::Relaxed) {
            let new = retry_start(|| async {
                let copy = live.sandbox.fork().await?;
                ActiveSandbox::open(copy, &self.environment, &self.settings).await
            });
            let new = new.await?;
            let old = std::mem::replace(&mut *live, Arc::new(new));
            old.sandbox.stop().await?;
        }
        Ok(live.clone())
    }

    /// Calls a tool in a temporary copy of the present state.
    ///
    /// # Errors
    ///
    /// Fails if the copy cannot be made, or the call fails.
    pub async fn call_in_fork(
        &self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<CallAnswer, SandboxError> {
        let fork = self.fork().await?;
        let answer = fork.call(tool, arguments, deadline).await;
        self.count_ended(&fork);
        let closed = fork.close().await;
        let answer = answer?;
        closed?;
        Ok(answer)
    }

    /// Returns a copy of the present state for a trial. Close it afterwards.
    ///
    /// # Errors
    ///
    /// Fails if the copy cannot be made.
    pub async fn fork(&self) -> Result<Session, SandboxError> {
        let live = self.live().await?;
        retry_start(|| async {
            let sandbox = live.sandbox.fork().await?;
            Session::open(sandbox, self.environment.clone(), self.settings.clone()).await
        })
        .await
    }

    /// Returns a sandbox of the saved state in which no code has run. Discard it afterwards.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox does not start, or if this session is itself one for a submission.
    pub async fn fresh(&self) -> Result<Session, SandboxError> {
        match &self.fresh {
            Some(fresh) => fresh.take().await,
            None => Err(SandboxError::system(
                "start a sandbox for a submission: this session is one itself",
            )),
        }
    }

    /// Ends a sandbox returned by [`Session::fresh`].
    pub async fn discard(&self, fresh: Session) {
        self.count_ended(&fresh);
        if let Some(all) = &self.fresh {
            all.discard(fresh).await;
        }
    }

    /// Checks that the sandbox and the toolbox are alive, before money is spent on a model call.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox or the toolbox is dead.
    pub async fn health(&self) -> Result<(), SandboxError> {
        let live = self.live().await?;
        live.sandbox.health().await?;
        live.connection.ping().await
    }

    /// Ends the session and everything in it.
    ///
    /// # Errors
    ///
    /// Fails if a sandbox cannot be stopped.
    pub async fn close(self) -> Result<(), SandboxError> {
        self.stop().await
    }

    /// Stops the sandboxes and their toolboxes while others still hold the session.
    ///
    /// # Errors
    ///
    /// Fails if a sandbox cannot be stopped.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        let fresh = match &self.fresh {
            Some(fresh) => fresh.stop().await,
            None => Ok(()),
        };
        self.live.lock().await.sandbox.stop().await?;
        fresh
    }
}

impl ActiveSandbox {
    async fn open(
        sandbox: Box<dyn Sandbox>,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Result<Self, SandboxError> {
        let opened = async {
            let mut config = config(sandbox.info(), environment, settings);
            if let Some(coverage) = &settings.wanted {
                config.wanted = Some(WantedLines {
                    package: coverage.package.unpack_into(sandbox.as_ref()).await?,
                    lines: coverage.lines.clone(),
                });
            }
            let toolbox = connection::upload(sandbox.as_ref()).await?;
            let confined = connection::confine(&toolbox, &config)?;
            environment
                .prepare_tests(sandbox.as_ref(), &confined)
                .await?;
            Connection::open(sandbox.as_ref(), &toolbox, &config).await
        };
        match opened.await {
            Ok(connection) => Ok(ActiveSandbox {
                sandbox,
                connection,
                dead: AtomicBool::new(false),
            }),
            Err(error) => {
                if let Err(error) = sandbox.stop().await {
                    tracing::warn!(%error, "could not stop a sandbox");
                }
                Err(error)
            }
        }
    }
}

/// Returns the answer to a call whose arguments are too long for the toolbox.
fn refuse_long_arguments(tool: &str, arguments: &Value) -> Option<CallAnswer> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, arguments).ok()?;
    (length.0 > MAX_DATA_LEN).then(|| {
        CallAnswer::refused(format!(
            "The arguments of `{tool}` take {} MiB; at most {} MiB are read.",
            length.0.div_ceil(1 << 20),
            MAX_DATA_LEN >> 20
        ))
    })
}

fn runs_code(tool: &str) -> bool {
    testwright_tools::registry::find(tool).is_some_and(|tool| tool.runs_code())
}

fn ended(tool: &str) -> CallAnswer {
    CallAnswer {
        text: format!(
            "`{tool}` crashed the tool server (out of memory, or the code killed it); it was restarted. No result. \
             The files are as they were left, and nothing is running."
        ),
        data: Value::Null,
        refused: false,
        ended: true,
    }
}

/// Describes the protections for people, after the kind of isolation.
fn describe_protections(layers: &Layers) -> String {
    let protections = [
        (layers.undumpable, "memory"),
        (layers.signals, "signals"),
        (layers.files, "files"),
        (layers.filter, "system calls"),
    ];
    let active = protections.iter().filter(|(is_on, _)| *is_on);
    let names: Vec<&str> = active.map(|(_, name)| *name).collect();
    match names.join(", ").as_str() {
        "" => "; nothing keeps programs from the tool server".to_owned(),
        names => format!("; programs kept from the tool server ({names})"),
    }
}

fn config(facts: &SandboxInfo, environment: &Environment, settings: &SessionSettings) -> Config {
    Config {
        workspace: facts.paths.workspace.clone(),
        base_archive: environment.base_archive_in(&facts.paths),
        scratch: facts.paths.temporary.join("testwright"),
        private: Some(facts.paths.private.join("state")),
        python: environment.python_in(&facts.paths),
        env: environment.env.clone(),
        runner: Runner {
            kind: RunnerKind::named(&environment.recipe.runner.kind).unwrap_or_default(),
            options: environment.recipe.runner.options.clone(),
            projects: environment.recipe.projects.clone(),
        },
        test_seconds: settings.test_seconds,
        processors: settings.processors,
        wanted: None,
    }
}
