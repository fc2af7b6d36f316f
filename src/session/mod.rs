//! A sandbox with the toolbox running in it: calls go in, answers come out.
//!
//! What fails here is never the model's fault: a [`SandboxError`] ends the run as `infrastructure`. What a
//! tool refuses is an ordinary answer with `refused` set.

mod connection;
mod program;
mod state;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::{Backend, Facts, Limits, Sandbox, SandboxError, Spec, Start};
use testwright_tools::config::{Config, Runner, RunnerKind};

pub use program::{DIGEST, TOOLBOX};
pub use state::{Contents, FileContent};

use connection::Connection;

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    pub text: String,
    pub data: Value,
    /// The call was refused: the text says why.
    pub refused: bool,
}

pub struct Session {
    sandbox: Box<dyn Sandbox>,
    connection: Connection,
    environment: Environment,
    settings: SessionSettings,
}

/// What a session needs to know besides the environment.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    pub limits: Limits,
    /// Seconds that one run of tests may take.
    pub test_seconds: u64,
    /// Id of the run, for labels.
    pub run: String,
}

impl Session {
    /// Starts a sandbox from a prepared environment, without network, and the toolbox in it.
    pub async fn start(
        backend: &dyn Backend,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Result<Self, SandboxError> {
        let sandbox = backend
            .start(&Spec {
                start: Start::Saved(environment.saved.clone()),
                network: false,
                host_port: None,
                root: false,
                limits: settings.limits.clone(),
                env: BTreeMap::new(),
                mounts: Vec::new(),
                purpose: settings.run.clone(),
            })
            .await?;
        let config = config(sandbox.facts(), environment, settings);
        Self::open(sandbox, config, environment.clone(), settings.clone()).await
    }

    async fn open(
        sandbox: Box<dyn Sandbox>,
        config: Config,
        environment: Environment,
        settings: SessionSettings,
    ) -> Result<Self, SandboxError> {
        let opened = async {
            environment.start_services(sandbox.as_ref()).await?;
            Connection::open(sandbox.as_ref(), &config).await
        };
        match opened.await {
            Ok(connection) => Ok(Session {
                sandbox,
                connection,
                environment,
                settings,
            }),
            Err(error) => {
                // The first error is the one to tell.
                let _ = sandbox.stop().await;
                Err(error)
            }
        }
    }

    pub fn facts(&self) -> &Facts {
        self.sandbox.facts()
    }

    /// Calls a tool. On the deadline the toolbox ends what the tool started and answers with what there is; a
    /// toolbox that does not answer soon after that is dead.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<CallAnswer, SandboxError> {
        let called = self.connection.call(tool, arguments, deadline).await;
        match called {
            // A toolbox that is gone may only follow from a container or an engine that is.
            Err(error) if error.kind == ErrorKind::Dead => {
                Err(self.sandbox.health().await.err().unwrap_or(error))
            }
            called => called,
        }
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
        let closed = fork.close().await;
        let answer = answer?;
        closed?;
        Ok(answer)
    }

    /// A copy of the present state, for a trial. Close it when done.
    pub async fn fork(&self) -> Result<Session, SandboxError> {
        let sandbox = self.sandbox.fork().await?;
        let config = config(sandbox.facts(), &self.environment, &self.settings);
        Session::open(
            sandbox,
            config,
            self.environment.clone(),
            self.settings.clone(),
        )
        .await
    }

    /// Are sandbox and toolbox alive? Asked before money is spent on a model call.
    pub async fn health(&self) -> Result<(), SandboxError> {
        self.sandbox.health().await?;
        self.connection.ping().await
    }

    /// Ends everything.
    pub async fn close(self) -> Result<(), SandboxError> {
        self.connection.close().await;
        self.sandbox.stop().await
    }

    /// Ends the sandbox, and with it the toolbox, while others still hold the session.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        self.sandbox.stop().await
    }
}

fn scratch(paths: &testwright_sandboxes::Paths) -> PathBuf {
    paths.temporary.join("testwright")
}

fn config(facts: &Facts, environment: &Environment, settings: &SessionSettings) -> Config {
    Config {
        workspace: facts.paths.workspace.clone(),
        base_archive: environment.base_archive_in(&facts.paths),
        scratch: scratch(&facts.paths),
        python: environment.python_in(&facts.paths),
        env: environment.env.clone(),
        runner: Runner {
            kind: RunnerKind::named(&environment.recipe.runner.kind).unwrap_or_default(),
            options: environment.recipe.runner.options.clone(),
        },
        test_seconds: settings.test_seconds,
    }
}
