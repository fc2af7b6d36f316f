//! Commands that prepare the tests of a sandbox after its services are up, such as the migrations of a database.
//!
//! A service starts without data in every new sandbox, so each sandbox runs the commands. They run like tests: with the
//! same user, variables and limits, and without network.

use std::time::Duration;

use super::steps::{StepOutput, keep_end, tail, text};
use super::{Environment, failure_hints};
use crate::error::SandboxError;
use crate::sandbox::{Command, Result, Sandbox, output};

/// Time limit for each command.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Exit code that stands for a timeout, as for the program `timeout`.
const TIMEOUT_CODE: i32 = 124;

/// Maximum lines of output in an error.
const MAX_LINES: usize = 8;

/// A script that runs `$2` as a shell command, with the folder `$1` first on the PATH.
const SCRIPT: &str = "PATH=\"${1:+$1:}$PATH\"; PYTHONDONTWRITEBYTECODE=1; \
                      export PATH PYTHONDONTWRITEBYTECODE; exec sh -c \"$2\" 2>&1";

/// A command before the tests that failed.
#[derive(Debug, Clone)]
pub(super) struct FailedCommand {
    pub command: String,
    pub printed: StepOutput,
}

impl FailedCommand {
    /// Returns whether the command was ended because it took too long.
    pub(super) fn timed_out(&self) -> bool {
        self.printed.code == TIMEOUT_CODE
    }

    /// Returns the command and the error that it reports, in one line.
    fn summary(&self) -> String {
        let output = &self.printed.text;
        let error = failure_hints::decisive_line(output);
        let last = || output.lines().rfind(|line| !line.trim().is_empty());
        let error = error.or_else(|| last().map(|line| line.trim().to_owned()));
        let code = self.printed.code;
        let error = error.unwrap_or_else(|| format!("exit code {code}"));
        format!("`{}` failed before the tests: {error}", self.command)
    }

    /// Returns a note on a command that was omitted because it fails.
    pub(super) fn note(&self) -> String {
        format!("{}; it was omitted", self.summary())
    }

    /// Adds this failure to the error of tests that were not prepared because of it.
    pub(super) fn explain(&self, error: SandboxError) -> SandboxError {
        let message = format!("{}\n  {}", error.message, self.summary());
        let hint = failure_hints::hint(&self.printed.text).or(error.hint);
        SandboxError {
            message,
            hint,
            ..error
        }
    }

    /// Returns advice, one imperative.
    fn hint(&self) -> String {
        failure_hints::hint(&self.printed.text).unwrap_or_else(|| {
            "correct or remove the command in before-tests under [environment] of testwright.toml"
                .to_owned()
        })
    }

    /// Returns the error for a sandbox whose tests cannot be prepared.
    fn error(&self) -> SandboxError {
        let tail = tail(self.printed.text.lines(), MAX_LINES);
        let message = format!(
            "`{}` failed before the tests with exit code {}{tail}",
            self.command, self.printed.code
        );
        SandboxError::system(message).hint(self.hint())
    }
}

impl Environment {
    /// Returns whether a new sandbox of this environment needs [`Environment::prepare_tests`].
    pub fn needs_preparation(&self) -> bool {
        !(self.recipe.services.is_empty() && self.recipe.before_tests.is_empty())
    }

    /// Starts the recipe's services in a sandbox of this environment, and runs its commands before the tests.
    ///
    /// `confined` is a program with arguments that starts each of them; see [`Environment::start_services`].
    ///
    /// # Errors
    ///
    /// Fails with kind `System` and the last lines of the output if a service does not start or a command fails. Also
    /// fails if a command cannot be run in the sandbox.
    pub async fn prepare_tests(&self, sandbox: &dyn Sandbox, confined: &[String]) -> Result<()> {
        self.start_services(sandbox, confined).await?;
        match self.run_before_tests(sandbox, confined).await? {
            Some(failed) => Err(failed.error()),
            None => Ok(()),
        }
    }

    /// Runs the commands before the tests up to the first that fails, which it returns.
    pub(super) async fn run_before_tests(
        &self,
        sandbox: &dyn Sandbox,
        confined: &[String],
    ) -> Result<Option<FailedCommand>> {
        let python = self.python_in(&sandbox.info().paths);
        let programs = python.parent().map(text).unwrap_or_default();
        for script in &self.recipe.before_tests {
            let mut argv = confined.to_vec();
            argv.extend(["sh", "-c", SCRIPT, "before-tests", &programs, script].map(str::to_owned));
            let printed = run(sandbox, &Command::new(argv)).await?;
            if printed.code != 0 {
                return Ok(Some(FailedCommand {
                    command: script.clone(),
                    printed,
                }));
            }
        }
        Ok(None)
    }
}

async fn run(sandbox: &dyn Sandbox, command: &Command) -> Result<StepOutput> {
    // The time limit of `output` is an error of the machine, but a slow command is not.
    let work = output(sandbox, command, 2 * TIMEOUT);
    let Ok(ended) = tokio::time::timeout(TIMEOUT, work).await else {
        return Ok(StepOutput {
            code: TIMEOUT_CODE,
            text: format!("it did not end within {} s", TIMEOUT.as_secs()),
        });
    };
    let ended = ended?;
    let mut text = String::from_utf8_lossy(&ended.stdout).into_owned();
    // The command's errors are part of its output. Only the program that confines it writes here.
    text.push_str(&String::from_utf8_lossy(&ended.stderr));
    keep_end(&mut text);
    Ok(StepOutput {
        code: ended.code,
        text,
    })
}

#[cfg(test)]
mod tests;
