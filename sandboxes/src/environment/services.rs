//! Services that run beside the tests, installed outside the tests' import path and started in the sandboxes that need
//! them.
//!
//! A service listens on the sandbox's own loopback. It lives until its sandbox stops or a test ends it. A fork has no
//! processes, so it starts its own services.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Environment;
use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::steps::{tail, text};
use crate::error::SandboxError;
use crate::recipe::Service;
use crate::sandbox::{Command, Paths, Result, Sandbox, output};

/// Time limit for a service to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the service's folder in the environment, which sandboxes share. Tests import nothing from there.
fn folder(paths: &Paths, service: &Service) -> PathBuf {
    paths.environment.join("services").join(&service.name)
}

impl Build<'_> {
    /// Installs each service into its own virtual environment.
    pub(super) async fn install_services(
        &self,
        builder: &BuildSandbox,
        services: &[Service],
    ) -> Result<()> {
        let steps = self.steps(builder);
        for service in services {
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
                // A service that did not start in time may be added again.
                "--clear",
                "--python",
                &base,
                &text(&folder),
            ]);
            steps
                .run(
                    &format!("create a virtual environment for the service {name}"),
                    &venv,
                )
                .await?;
            if service.requirements.is_empty() {
                continue;
            }
            let python = text(&folder.join("bin/python"));
            let mut arguments = ["pip", "install", "--python", &python]
                .map(str::to_owned)
                .to_vec();
            if let Some(version) = &service.python {
                let packages = text(&folder.join("packages"));
                let options = [
                    "--target",
                    &packages,
                    "--python-version",
                    version,
                    "--only-binary",
                    ":all:",
                ];
                arguments.extend(options.map(str::to_owned));
            }
            if let (Some(_), Some(date)) = (&self.recipe.exclude_newer, &self.plan.date) {
                arguments.push(format!("--exclude-newer={date}"));
            }
            if self.uv_compiles() && service.python.is_none() {
                arguments.push("--compile-bytecode".to_owned());
            }
            arguments.extend(service.requirements.iter().cloned());
            let step = format!("install the service {name}");
            let install = builder.uv(arguments);
            // A guessed service may not be available for this machine. Verification notices that it does not start.
            match self.plan.guess.services {
                true => drop(steps.attempt(&step, &install).await?),
                false => drop(steps.run(&step, &install).await?),
            }
        }
        Ok(())
    }
}

impl Environment {
    /// Starts the recipe's services in a sandbox of this environment, and waits until they accept connections.
    ///
    /// Services that already run are left alone. Without services this takes no time. `confined` is a program with
    /// arguments that starts each service, so that the service reaches nothing that is created after it.
    ///
    /// # Errors
    ///
    /// Fails with kind `System` and the last lines of a service's output if the service ends or does not accept
    /// connections. Also fails if a command cannot be run in the sandbox.
    pub async fn start_services(&self, sandbox: &dyn Sandbox, confined: &[String]) -> Result<()> {
        let paths = &sandbox.info().paths;
        for service in &self.recipe.services {
            if accepts_connections(sandbox, service, Duration::ZERO).await? {
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
                ready = accepts_connections(sandbox, service, START_TIMEOUT) => ready?,
                // A program that moves itself to the background exits with code 0.
                code = process.exit => {
                    let left = START_TIMEOUT.saturating_sub(begun.elapsed());
                    code? == 0 && accepts_connections(sandbox, service, left).await?
                }
            };
            if !ready {
                return Err(failed(sandbox, service, &log).await);
            }
        }
        Ok(())
    }
}

/// Returns the command of a service. Its output goes to a file, so that no process has to read it while it runs.
fn command(paths: &Paths, service: &Service, log: &Path, confined: &[String]) -> Command {
    let folder = folder(paths, service);
    let bin = folder.join("bin");
    let mut argv = confined.to_vec();
    argv.extend(["sh", "-c"].map(str::to_owned));
    argv.push(
        "log=$1; shift; SERVICE=$1; PATH=$1/bin:$PATH; export SERVICE; shift; exec \"$@\" </dev/null >\"$log\" 2>&1"
            .to_owned(),
    );
    argv.extend(["service".to_owned(), text(log), text(&folder)]);
    argv.extend(service.command.iter().map(|word| match word.as_str() {
        "python" => text(&bin.join("python")),
        _ => word.clone(),
    }));
    Command {
        // The workspace is avoided, because the service must not import its modules.
        directory: Some(paths.temporary.clone()),
        ..Command::new(argv)
    }
}

async fn accepts_connections(
    sandbox: &dyn Sandbox,
    service: &Service,
    timeout: Duration,
) -> Result<bool> {
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
        timeout.as_secs_f64(),
        service.port,
    );
    let ask = Command::new([
        text(&python),
        "-I".to_owned(),
        "-S".to_owned(),
        "-c".to_owned(),
        code,
    ]);
    let answer = output(sandbox, &ask, timeout + START_TIMEOUT).await?;
    Ok(answer.code == 0)
}

async fn failed(sandbox: &dyn Sandbox, service: &Service, log: &Path) -> SandboxError {
    let end = Command::new(["tail", "-c", "2000", &text(log)]);
    let end = output(sandbox, &end, START_TIMEOUT).await.ok();
    let end = end.map(|end| String::from_utf8_lossy(&end.stdout).into_owned());
    let end = end.unwrap_or_default();
    let tail = tail(end.lines(), 8);
    SandboxError::system(format!(
        "the service {} did not start: port {} accepts no connections{tail}",
        service.name, service.port
    ))
}
