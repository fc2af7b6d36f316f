//! Execution of build steps in a sandbox, with all output in the log on the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::log::{Log, LogLines};
use super::{BuildEvent, Progress, failure_hints, locked};
use crate::egress::Egress;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Process, Result, Sandbox};

/// The output and exit code of a step.
#[derive(Debug, Clone, Default)]
pub(super) struct StepOutput {
    pub code: i32,
    pub text: String,
}

/// Runs steps in one sandbox.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    pub sandbox: &'a dyn Sandbox,
    pub log: &'a Log,
    pub progress: Progress<'a>,
    pub env: &'a BTreeMap<String, String>,
    pub deadline: Duration,
    /// Egress whose refusals are added to the log and to the error of the step.
    pub egress: Option<&'a Egress>,
}

impl Steps<'_> {
    /// Runs a step, and fails unless its exit code is 0.
    pub(super) async fn run(&self, step: &str, command: &Command) -> Result<String> {
        let printed = self.attempt(step, command).await?;
        if printed.code == 0 {
            return Ok(printed.text);
        }
        Err(self.failed(step, &printed))
    }

    pub(super) async fn shell(&self, step: &str, script: &str) -> Result<String> {
        self.run(step, &Command::shell(script)).await
    }

    /// Runs a step and returns its output, whatever the exit code.
    pub(super) async fn attempt(&self, step: &str, command: &Command) -> Result<StepOutput> {
        (self.progress)(BuildEvent::Started {
            step: step.to_owned(),
        });
        let begun = self.log.begin_step();
        self.log
            .line(&format!("== {step}\n$ {}", command_text(command)));
        let mut command = command.clone();
        for (name, value) in self.env {
            command
                .env
                .entry(name.clone())
                .or_insert_with(|| value.clone());
        }
        let work = self.stream(&command);
        let ended = tokio::time::timeout(self.deadline, work).await;
        let seconds = self.log.end_step(begun);
        let mut printed = match ended {
            Ok(printed) => printed.map_err(|e| self.interrupted_error(step, e))?,
            Err(_) => {
                let limit = self.deadline.as_secs();
                self.log
                    .line(&format!("== {step}: timed out after {limit} s"));
                let what = format!("`{step}` timed out after {limit} s");
                return Err(timeout(self.log, what));
            }
        };
        for notice in self.egress.map(Egress::take_notices).unwrap_or_default() {
            self.log.line(&notice);
            printed.text.push_str(&format!("\n{notice}\n"));
        }
        self.log.line(&format!(
            "== {step}: exit code {}, {seconds:.1} s\n",
            printed.code
        ));
        if printed.code == 0 {
            (self.progress)(BuildEvent::Finished {
                step: step.to_owned(),
                seconds,
            });
        }
        Ok(printed)
    }

    /// Returns the error for a failed step; see [`failed`].
    pub(super) fn failed(&self, step: &str, printed: &StepOutput) -> SandboxError {
        failed(self.log, step, printed)
    }

    /// Returns the error for a step whose sandbox or engine was lost.
    fn interrupted_error(&self, step: &str, error: SandboxError) -> SandboxError {
        self.log
            .line(&format!("== {step} was interrupted: {error}"));
        let log = self.log.path.display();
        SandboxError {
            message: format!("`{step}` was interrupted: {error}\n  full log: {log}"),
            log: Some(self.log.path.clone()),
            ..error
        }
    }

    async fn stream(&self, command: &Command) -> Result<StepOutput> {
        let Process {
            stdin,
            stdout,
            stderr,
            exit,
        } = self.sandbox.spawn(command).await?;
        drop(stdin);
        let text = Mutex::new(String::new());
        let (out, err) = tokio::join!(self.lines(stdout, &text), self.lines(stderr, &text));
        out?;
        err?;
        Ok(StepOutput {
            code: exit.await?,
            text: text.into_inner().unwrap_or_else(PoisonError::into_inner),
        })
    }

    /// Copies whole lines to the log and to `text`.
    async fn lines(&self, mut from: impl AsyncRead + Unpin, text: &Mutex<String>) -> Result<()> {
        let mut lines = LogLines::default();
        let mut buffer = vec![0; 1 << 14];
        loop {
            let count = from.read(&mut buffer).await?;
            let whole = match count {
                0 => lines.rest(),
                _ => lines.push(&buffer[..count]),
            };
            if !whole.is_empty() {
                self.log.line(whole.trim_end_matches('\n'));
                let mut text = locked(text);
                text.push_str(&whole);
                keep_end(&mut text);
            }
            if count == 0 {
                return Ok(());
            }
        }
    }
}

/// Drops the beginning of a long output. Its end explains a failure, and endless output must not fill the memory.
pub(super) fn keep_end(text: &mut String) {
    if text.len() > 4 << 20 {
        let cut = text.len() - (2 << 20);
        let cut = (cut..text.len())
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        text.drain(..cut);
    }
}

/// Returns the error for a failed step: its last lines, the path of the log, and a hint.
pub(super) fn failed(log: &Log, step: &str, printed: &StepOutput) -> SandboxError {
    let what = format!("`{step}` failed with exit code {}", printed.code);
    failure(log, what, &printed.text)
}

pub(super) fn failure(log: &Log, what: String, text: &str) -> SandboxError {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let tail = tail(lines, 12);
    let place = log.path.display();
    let message = format!("{what}{tail}\n  full log: {place}");
    SandboxError {
        log: Some(log.path.clone()),
        hint: failure_hints::hint(text),
        is_external: failure_hints::is_external(text),
        ..SandboxError::new(ErrorKind::Build, message)
    }
}

/// Returns the last of the lines, each indented and after a line end.
pub(super) fn tail<'a>(lines: impl Iterator<Item = &'a str>, count: usize) -> String {
    let lines: Vec<String> = lines.map(|line| format!("\n    {line}")).collect();
    lines[lines.len().saturating_sub(count)..].concat()
}

/// Returns the error for a step that timed out.
pub(super) fn timeout(log: &Log, what: String) -> SandboxError {
    SandboxError {
        is_external: true,
        ..failure(log, what, "")
    }
}

/// Names a step after a script: its first meaningful line, and an ellipsis if there are more.
pub(super) fn label(script: &str) -> String {
    let lines = script.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let says = |line: &&str| !line.starts_with('#') && !line.starts_with("set -");
    let first = lines.iter().copied().find(says);
    match (first.or(lines.first().copied()), lines.len()) {
        (Some(line), 1) => line.to_owned(),
        (Some(line), _) => format!("{line} …"),
        (None, _) => script.to_owned(),
    }
}

fn command_text(command: &Command) -> String {
    match command.argv.as_slice() {
        [sh, c, script] if sh == "sh" && c == "-c" => script.clone(),
        argv => argv.join(" "),
    }
}

/// Returns the user and password in a URL.
pub(crate) fn secret(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    authority
        .rsplit_once('@')
        .map(|(login, _)| login.to_owned())
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn label_is_one_line() {
        assert_eq!(label("pip install -e ."), "pip install -e .");
        let script = "\nset -e\n# The C parts.\npython setup.py build_ext\nrm -r build\n";
        assert_eq!(label(script), "python setup.py build_ext …");
        assert_eq!(label("# a\n# b"), "# a …");
        assert_eq!(label(""), "");
    }
}
