//! The process of the program, with its input and output.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Deserialize;
use testwright_config::settings::AZURE_KEY;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::command_line::CommandLine;
use super::gateway::Gateway;
use super::process_group::ProcessGroup;

/// Interval at which the process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time to read the rest of the output after the process has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes that are kept from the end of each output.
const MAX_OUTPUT_LEN: usize = 16 << 20;
/// Maximum lines of the error output in a reason.
const MAX_REASON_LINES: usize = 3;
/// Maximum characters of each of these lines.
const MAX_REASON_LINE_LEN: usize = 300;

/// A running program. Dropping it kills the whole group.
pub(super) struct Program {
    pub(super) pid: Pid,
    child: Child,
    group: ProcessGroup,
    stdout: OutputReader,
    stderr: OutputReader,
}

/// The end of a program.
pub(super) struct ProgramEnd {
    status: io::Result<ExitStatus>,
    /// End of its output.
    pub(super) stdout: String,
    /// End of its error output.
    pub(super) stderr: Vec<u8>,
}

impl Program {
    pub(super) fn start(
        line: &CommandLine,
        key_variable: &str,
        gateway: &Gateway,
        input: String,
    ) -> io::Result<Self> {
        let mut command = Command::new(line.program());
        command.args(line.arguments());
        for (name, _) in std::env::vars_os() {
            let is_secret = name == key_variable || name == AZURE_KEY;
            if is_secret || name.to_string_lossy().starts_with("TESTWRIGHT_") {
                command.env_remove(&name);
            }
        }
        for name in ["OPENAI_BASE_URL", "OPENAI_API_BASE"] {
            command.env(name, gateway.model_url());
        }
        command.env("OPENAI_API_KEY", &gateway.token);
        for name in ["NO_PROXY", "no_proxy"] {
            let mut hosts = std::env::var_os(name).unwrap_or_default();
            if !hosts.is_empty() {
                hosts.push(",");
            }
            hosts.push(OsString::from("127.0.0.1"));
            command.env(name, hosts);
        }
        let group = ProcessGroup::start()?;
        command
            .process_group(group.id())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = id.ok_or_else(|| io::Error::other("the process has no ID"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // The write fails only if the program does not read its input.
            tokio::spawn(async move {
                let _ = stdin.write_all(input.as_bytes()).await;
            });
        }
        Ok(Program {
            pid,
            stdout: OutputReader::start(child.stdout.take()),
            stderr: OutputReader::start(child.stderr.take()),
            child,
            group,
        })
    }

    /// Kills what is left of the group, and returns how the program ended.
    pub(super) async fn stop(mut self) -> ProgramEnd {
        self.group.kill();
        let status = self.child.wait().await;
        let stdout = self.stdout.finish().await;
        ProgramEnd {
            status,
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: self.stderr.finish().await,
        }
    }
}

/// Completes when the process has ended. It can still be waited for.
pub(super) async fn exited(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), options), Ok(None)) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Reads an output in the background, and keeps its end.
struct OutputReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl OutputReader {
    fn start(output: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let buffer = bytes.clone();
        let task = tokio::spawn(async move {
            let Some(mut output) = output else { return };
            let mut piece = vec![0; 64 << 10];
            while let Ok(length @ 1..) = output.read(&mut piece).await {
                let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
                buffer.extend_from_slice(&piece[..length]);
                let excess = buffer.len().saturating_sub(MAX_OUTPUT_LEN);
                buffer.drain(..excess);
            }
        });
        OutputReader { bytes, task }
    }

    /// Returns the output. A process outside of the group may keep the pipe open.
    async fn finish(&mut self) -> Vec<u8> {
        let _ = tokio::time::timeout(OUTPUT_TIMEOUT, &mut self.task).await;
        self.task.abort();
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ProgramEnd {
    /// Returns why there is no test, for a program that printed none.
    pub(super) fn reason(&self) -> String {
        match &self.status {
            Ok(status) if status.success() => {
                "the program ended without a test: it printed no patch and did not call `submit`"
                    .to_owned()
            }
            Ok(status) => {
                let status = match status.code() {
                    Some(code) => format!("exit status {code}"),
                    None => status.to_string(),
                };
                let text = String::from_utf8_lossy(&self.stderr);
                let lines = text.lines().map(str::trim);
                let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
                let last = lines[lines.len().saturating_sub(MAX_REASON_LINES)..].iter();
                let last = last.map(|line| line.chars().take(MAX_REASON_LINE_LEN).collect());
                let last = last.collect::<Vec<String>>().join("; ");
                match last.is_empty() {
                    true => format!("the program ended without a test, with {status}"),
                    false => format!("the program ended without a test, with {status}: {last}"),
                }
            }
            Err(error) => format!("the program was lost: {error}"),
        }
    }
}

/// The result that a program prints.
#[derive(Deserialize)]
struct Printed {
    patch: Option<String>,
}

/// Returns the patch that a program printed: a JSON object with `patch`, alone or on the last line, or a unified diff
/// at the end.
pub(super) fn printed_patch(stdout: &str) -> Option<String> {
    let whole = stdout.trim();
    let last_line = whole.lines().next_back().unwrap_or_default();
    let mut texts = [whole, last_line].into_iter();
    if let Some(printed) = texts.find_map(|text| serde_json::from_str::<Printed>(text).ok()) {
        return printed.patch.filter(|patch| !patch.trim().is_empty());
    }
    let is_start = |line: &str| line.starts_with("diff --git ") || line.starts_with("--- ");
    let lines = stdout.split_inclusive('\n');
    let patch: String = lines.skip_while(|line| !is_start(line)).collect();
    let end = match patch.ends_with('\n') {
        true => "",
        false => "\n",
    };
    (!patch.is_empty()).then(|| patch + end)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const DIFF: &str = "--- a/t.py\n+++ b/t.py\n@@ -1 +1,2 @@\n a\n+b\n";

    #[test]
    fn reason_has_last_lines_of_error_output() {
        let end = ProgramEnd {
            status: Ok(ExitStatus::from_raw(3 << 8)),
            stdout: String::new(),
            stderr: format!("a\nb\n\n c\n{}\n", "d".repeat(1 << 20)).into_bytes(),
        };
        let line = "d".repeat(MAX_REASON_LINE_LEN);
        assert_eq!(
            end.reason(),
            format!("the program ended without a test, with exit status 3: b; c; {line}")
        );
    }

    #[test]
    fn patches_are_read_from_output() {
        let json = serde_json::json!({ "patch": DIFF }).to_string();
        for output in [
            DIFF.to_owned(),
            format!("thinking\n{DIFF}"),
            DIFF.trim_end().to_owned(),
            json.clone(),
            format!("thinking {{}}\n{json}\n"),
        ] {
            assert_eq!(printed_patch(&output).as_deref(), Some(DIFF), "{output}");
        }
        for output in ["", "done", "{\"patch\": null}", "{}", "{\"patch\": \" \"}"] {
            assert_eq!(printed_patch(output), None, "{output}");
        }
    }
}
