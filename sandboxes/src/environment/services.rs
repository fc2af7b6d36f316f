//! What runs beside the tests: installed where tests do not import from, started in sandboxes that need it.
//!
//! A service hears on the sandbox's own loopback. It lives as long as its sandbox, or until a test ends it; a fork has
//! no processes, so it starts its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Environment;
use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::steps::{Steps, text};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe::Service;
use crate::sandbox::{Command, Paths, Result, Sandbox, output};

/// How long a service may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Inside the environment's folder, which sandboxes share; nothing is imported from there.
fn folder(paths: &Paths, service: &Service) -> PathBuf {
    paths.environment.join("services").join(&service.name)
}

impl Build<'_> {
    /// One virtual environment each.
    pub(super) async fn install_services(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
    ) -> Result<()> {
        for service in &self.recipe.services {
            let folder = folder(&builder.paths, service);
            let name = &service.name;
            let base = match &self.recipe.image {
                Some(_) => builder.python.clone(),
                None => {
                    let of_the_tests = "import os, sys; print(os.path.realpath(sys.executable))";
                    let ask = Command::new([&builder.python, "-c", of_the_tests]);
                    steps
                        .run("find the interpreter", &ask)
                        .await?
                        .trim()
                        .to_owned()
                }
            };
            let venv = builder.uv([
                "venv",
                "--quiet",
                "--no-project",
                "--python",
                &base,
                &text(&folder),
            ]);
            steps
                .run(&format!("make a place for the service {name}"), &venv)
                .await?;
            if service.requirements.is_empty() {
                continue;
            }
            let python = text(&folder.join("bin/python"));
            let mut arguments = ["pip", "install", "--python", &python]
                .map(str::to_owned)
                .to_vec();
            if let (Some(_), Some(date)) = (&self.recipe.exclude_newer, &self.plan.date) {
                arguments.push(format!("--exclude-newer={date}"));
            }
            if self.uv_compiles() {
                arguments.push("--compile-bytecode".to_owned());
            }
            arguments.extend(service.requirements.iter().cloned());
            steps
                .run(
                    &format!("install the service {name}"),
                    &builder.uv(arguments),
                )
                .await?;
        }
        Ok(())
    }
}

impl Environment {
    /// Starts the recipe's services in a sandbox of this environment and waits until they answer; those that run
    /// already are left alone. Without services it takes no time. `confined` is a program and its arguments that start
    /// each service so that it reaches nothing of what comes after it.
    ///
    /// Errors: kind `System` with the last lines that a service printed, for one that ends or does not answer.
    pub async fn start_services(&self, sandbox: &dyn Sandbox, confined: &[String]) -> Result<()> {
        let paths = &sandbox.info().paths;
        for service in &self.recipe.services {
            if answers(sandbox, service, Duration::ZERO).await? {
                continue;
            }
            let log = paths
                .temporary
                .join(format!(".service-{}.log", service.name));
            let process = sandbox
                .spawn(&command(paths, service, &log, confined))
                .await?;
            let begun = Instant::now();
            let ready = tokio::select! {
                ready = answers(sandbox, service, START_TIMEOUT) => ready?,
                // A program that goes into the background ends well.
                code = process.exit => {
                    let left = START_TIMEOUT.saturating_sub(begun.elapsed());
                    code? == 0 && answers(sandbox, service, left).await?
                }
            };
            if !ready {
                return Err(failed(sandbox, service, &log).await);
            }
        }
        Ok(())
    }
}

/// With outputs to a file, so that nobody has to read them for as long as it runs.
fn command(paths: &Paths, service: &Service, log: &Path, confined: &[String]) -> Command {
    let bin = folder(paths, service).join("bin");
    let mut argv = confined.to_vec();
    argv.extend(["sh", "-c"].map(str::to_owned));
    argv.push(
        "log=$1; shift; PATH=$1:$PATH; shift; exec \"$@\" </dev/null >\"$log\" 2>&1".to_owned(),
    );
    argv.extend(["service".to_owned(), text(log), text(&bin)]);
    argv.extend(service.command.iter().map(|word| match word.as_str() {
        "python" => text(&bin.join("python")),
        _ => word.clone(),
    }));
    Command {
        // Not the workspace: its modules are not for the service.
        directory: Some(paths.temporary.clone()),
        ..Command::new(argv)
    }
}

async fn answers(sandbox: &dyn Sandbox, service: &Service, patience: Duration) -> Result<bool> {
    let python = folder(&sandbox.info().paths, service).join("bin/python");
    let code = format!(
        "import socket, sys, time\n\
         end = time.time() + {}\n\
         while True:\n    \
             try:\n        \
                 socket.create_connection(('127.0.0.1', {}), 5).close()\n        \
                 break\n    \
             except OSError:\n        \
                 if time.time() >= end:\n            \
                     sys.exit(1)\n        \
                 time.sleep(0.05)\n",
        patience.as_secs_f64(),
        service.port,
    );
    let ask = Command::new([
        text(&python),
        "-I".to_owned(),
        "-S".to_owned(),
        "-c".to_owned(),
        code,
    ]);
    let answer = output(sandbox, &ask, patience + START_TIMEOUT).await?;
    Ok(answer.code == 0)
}

async fn failed(sandbox: &dyn Sandbox, service: &Service, log: &Path) -> SandboxError {
    let end = Command::new(["tail", "-c", "2000", &text(log)]);
    let end = output(sandbox, &end, START_TIMEOUT).await.ok();
    let end = end.map(|end| String::from_utf8_lossy(&end.stdout).into_owned());
    let end = end.unwrap_or_default();
    let lines: Vec<&str> = end.lines().collect();
    let tail: String = lines[lines.len().saturating_sub(8)..]
        .iter()
        .map(|line| format!("\n    {line}"))
        .collect();
    SandboxError::new(
        ErrorKind::System,
        format!(
            "start the service {}: nothing answers at port {}{tail}",
            service.name, service.port
        ),
    )
}
