//! A sandbox with the toolbox running in it: calls go in, answers come out.
//!
//! What fails here is never the model's fault: a [`SandboxError`] ends the run as `infrastructure`. What a
//! tool refuses is an ordinary answer with `refused` set, and so is that the toolbox ended while code of the
//! repository or of the model ran: it is started again, in a copy of the files in which nothing runs.

mod connection;
mod fresh;
mod line_limit;
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
pub use state::{Contents, FileContent};

use connection::Connection;
use fresh::Fresh;

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    pub text: String,
    pub data: Value,
    /// The call was refused: the text says why.
    pub refused: bool,
    /// The toolbox ended in this call: the text says so, and there is no result.
    pub ended: bool,
}

pub struct Session {
    live: Mutex<Arc<Live>>,
    facts: SandboxInfo,
    environment: Environment,
    settings: SessionSettings,
    /// Where submissions are judged; `None` in a session that is itself for one purpose.
    fresh: Option<Fresh>,
    /// How often the toolbox ended while code ran that is not ours.
    ended: AtomicU32,
}

/// A sandbox and the toolbox in it.
struct Live {
    sandbox: Box<dyn Sandbox>,
    connection: Connection,
    /// The toolbox is gone.
    dead: AtomicBool,
}

/// What a session needs to know besides the environment.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    pub limits: Limits,
    /// Seconds that one run of tests may take.
    pub test_seconds: u64,
    /// Runs of tests that are made at one time; `None`: as many as there are processors.
    pub processors: Option<usize>,
    /// Id of the run, for labels.
    pub run: String,
    /// Lines that tests are wanted for: `cover` tells which of them run.
    pub wanted: Option<WantedCoverage>,
}

/// Lines that are to run, and coverage.py to tell whether they do.
#[derive(Debug, Clone)]
pub struct WantedCoverage {
    pub package: testwright_sandboxes::coverage::Coverage,
    /// By path relative to the repository.
    pub lines: BTreeMap<String, BTreeSet<u32>>,
}

impl Session {
    /// Starts a sandbox from a prepared environment, without network, and the toolbox in it.
    pub async fn start(
        backend: Arc<dyn Backend>,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Result<Self, SandboxError> {
        let mut session = Self::only(backend.as_ref(), environment, settings).await?;
        session.fresh = Some(Fresh::new(backend, environment, settings));
        Ok(session)
    }

    /// The same, without further sandboxes for submissions. Boxed: crates that await it would compile it again.
    fn only<'a>(
        backend: &'a dyn Backend,
        environment: &'a Environment,
        settings: &'a SessionSettings,
    ) -> BoxFuture<'a, Result<Self, SandboxError>> {
        Box::pin(Self::start_once_or_again(backend, environment, settings))
    }

    async fn start_once_or_again(
        backend: &dyn Backend,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Result<Self, SandboxError> {
        let spec = Spec {
            start: SandboxSource::Saved(environment.saved.clone()),
            network: false,
            host_port: None,
            root: false,
            limits: settings.limits.clone(),
            env: BTreeMap::new(),
            mounts: Vec::new(),
            purpose: settings.run.clone(),
        };
        retry_start(|| async {
            let sandbox = backend.start(&spec).await?;
            Self::open(sandbox, environment.clone(), settings.clone()).await
        })
        .await
    }

    async fn open(
        sandbox: Box<dyn Sandbox>,
        environment: Environment,
        settings: SessionSettings,
    ) -> Result<Self, SandboxError> {
        let live = Live::open(sandbox, &environment, &settings).await?;
        let mut facts = live.sandbox.info().clone();
        facts
            .isolation
            .push_str(&kept_apart(&live.connection.layers));
        Ok(Session {
            live: Mutex::new(Arc::new(live)),
            facts,
            environment,
            settings,
            fresh: None,
            ended: AtomicU32::new(0),
        })
    }

    /// Of the sandbox that was started first.
    /// Lines are named that tests are wanted for.
    pub fn has_wanted_lines(&self) -> bool {
        self.settings.wanted.is_some()
    }

    pub fn info(&self) -> &SandboxInfo {
        &self.facts
    }

    /// What it was started from.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// How often the toolbox ended while code of the repository or of the model ran.
    pub fn ended_by_code(&self) -> u32 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Adds how often that happened in a session that judged a submission of this one.
    pub fn count_ended(&self, other: &Session) {
        self.ended
            .fetch_add(other.ended_by_code(), Ordering::Relaxed);
    }

    /// Calls a tool. On the deadline the toolbox ends what the tool started and answers with what there is; a
    /// toolbox that does not answer soon after that is dead.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<CallAnswer, SandboxError> {
        if let Some(refused) = too_long(tool, &arguments) {
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
                // A toolbox that is gone may only follow from a container or an engine that is.
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

    /// The sandbox as it is; after the toolbox has ended, a copy of its files with a new toolbox. What was left running
    /// ends with the old one.
    async fn live(&self) -> Result<Arc<Live>, SandboxError> {
        let mut live = self.live.lock().await;
        if live.dead.load(Ordering::Relaxed) {
            let new = retry_start(|| async {
                let copy = live.sandbox.fork().await?;
                Live::open(copy, &self.environment, &self.settings).await
            });
            let new = new.await?;
            let old = std::mem::replace(&mut *live, Arc::new(new));
            old.sandbox.stop().await?;
        }
        Ok(live.clone())
    }

    /// Calls a tool in a copy of the present state, which is thrown away afterwards.
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

    /// A copy of the present state, for a trial. Close it when done.
    pub async fn fork(&self) -> Result<Session, SandboxError> {
        let live = self.live().await?;
        retry_start(|| async {
            let sandbox = live.sandbox.fork().await?;
            Session::open(sandbox, self.environment.clone(), self.settings.clone()).await
        })
        .await
    }

    /// A sandbox of the saved state in which nothing has happened yet. Discard it when done.
    pub async fn fresh(&self) -> Result<Session, SandboxError> {
        match &self.fresh {
            Some(fresh) => fresh.take().await,
            None => Err(SandboxError::new(
                ErrorKind::System,
                "start a sandbox for a submission: this session is one itself",
            )),
        }
    }

    /// Ends a sandbox that [`Session::fresh`] gave.
    pub async fn discard(&self, fresh: Session) {
        self.count_ended(&fresh);
        if let Some(all) = &self.fresh {
            all.discard(fresh).await;
        }
    }

    /// Are sandbox and toolbox alive? Asked before money is spent on a model call.
    pub async fn health(&self) -> Result<(), SandboxError> {
        let live = self.live().await?;
        live.sandbox.health().await?;
        live.connection.ping().await
    }

    /// Ends everything.
    pub async fn close(self) -> Result<(), SandboxError> {
        self.stop().await
    }

    /// Ends the sandboxes, and with them the toolboxes, while others still hold the session.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        let fresh = match &self.fresh {
            Some(fresh) => fresh.stop().await,
            None => Ok(()),
        };
        self.live.lock().await.sandbox.stop().await?;
        fresh
    }
}

impl Live {
    async fn open(
        sandbox: Box<dyn Sandbox>,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Result<Self, SandboxError> {
        let opened = async {
            let mut config = config(sandbox.info(), environment, settings);
            if let Some(wanted) = &settings.wanted {
                config.wanted = Some(WantedLines {
                    package: wanted.package.put(sandbox.as_ref()).await?,
                    lines: wanted.lines.clone(),
                });
            }
            let toolbox = connection::upload(sandbox.as_ref()).await?;
            let confined = connection::confine(&toolbox, &config)?;
            environment
                .start_services(sandbox.as_ref(), &confined)
                .await?;
            Connection::open(sandbox.as_ref(), &toolbox, &config).await
        };
        match opened.await {
            Ok(connection) => Ok(Live {
                sandbox,
                connection,
                dead: AtomicBool::new(false),
            }),
            Err(error) => {
                // The first error is the one to tell.
                let _ = sandbox.stop().await;
                Err(error)
            }
        }
    }
}

/// The answer to a call whose arguments no toolbox would read.
fn too_long(tool: &str, arguments: &Value) -> Option<CallAnswer> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, arguments).ok()?;
    (length.0 > MAX_DATA_LEN).then(|| CallAnswer {
        text: format!(
            "The arguments of `{tool}` take {} MiB; at most {} MiB are read.",
            length.0.div_ceil(1 << 20),
            MAX_DATA_LEN >> 20
        ),
        data: Value::Null,
        refused: true,
        ended: false,
    })
}

fn runs_code(tool: &str) -> bool {
    testwright_tools::registry::find(tool).is_some_and(|tool| tool.runs_code())
}

fn ended(tool: &str) -> CallAnswer {
    CallAnswer {
        text: format!(
            "The tool server ended while `{tool}` ran, and was started again: what ran took too much memory, or \
             ended it. There is no result; the files are as they were left, and nothing runs any more."
        ),
        data: Value::Null,
        refused: false,
        ended: true,
    }
}

/// For people, after what isolates the sandbox.
fn kept_apart(layers: &Layers) -> String {
    let named = [
        (layers.undumpable, "memory"),
        (layers.signals, "signals"),
        (layers.files, "files"),
        (layers.filter, "system calls"),
    ];
    let named: Vec<&str> = named
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, n)| *n)
        .collect();
    match named.is_empty() {
        true => "; nothing keeps programs from the tool server".to_owned(),
        false => format!(
            "; programs kept from the tool server ({})",
            named.join(", ")
        ),
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
        },
        test_seconds: settings.test_seconds,
        processors: settings.processors,
        wanted: None,
    }
}
