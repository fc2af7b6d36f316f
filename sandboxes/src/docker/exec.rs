//! Processes in a container: an exec, whose single stream from the engine is split into three.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use futures::{FutureExt, Stream, StreamExt};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;

use super::archive::Ids;
use super::container_config::WORKSPACE;
use super::engine::Engine;
use super::error::EngineResult;
use crate::error::SandboxError;
use crate::sandbox::{Command, Process, Result};

/// Bytes in each direction that can wait for a reader, as in a Linux pipe.
const PIPE_CAPACITY: usize = 64 << 10;

/// Runs a command with the given environment; its own is ignored.
pub(super) async fn spawn(
    engine: &Engine,
    container: &str,
    command: &Command,
    env: BTreeMap<String, String>,
    user: Ids,
) -> Result<Process> {
    let name = command.argv.first().map_or("", String::as_str);
    let doing = format!("run `{name}`");
    let directory = command.directory.as_deref().unwrap_or(Path::new(WORKSPACE));
    let env = env
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"));
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        env: Some(env.collect()),
        cmd: Some(command.argv.clone()),
        user: Some(format!("{}:{}", user.uid, user.gid)),
        working_dir: Some(directory.display().to_string()),
        ..CreateExecOptions::default()
    };
    let created = engine.api.create_exec(container, options).await;
    let id = created.doing(&doing)?.id;
    let start = StartExecOptions {
        output_capacity: Some(PIPE_CAPACITY),
        ..StartExecOptions::default()
    };
    let started = engine.api.start_exec(&id, Some(start)).await;
    let StartExecResults::Attached { output, mut input } = started.doing(&doing)? else {
        return Err(SandboxError::system(format!(
            "{doing}: the engine returned no streams"
        )));
    };
    let (stdin, mut from_stdin) = tokio::io::duplex(PIPE_CAPACITY);
    tokio::spawn(async move {
        // Writing and shutting down fail if the process has closed its end already.
        let _ = tokio::io::copy(&mut from_stdin, &mut input).await;
        let _ = input.shutdown().await;
    });
    let (stdout, to_stdout) = tokio::io::duplex(PIPE_CAPACITY);
    let (stderr, to_stderr) = tokio::io::duplex(PIPE_CAPACITY);
    let (end_sender, ended) = oneshot::channel();
    tokio::spawn(async move {
        let missing = sort(output, to_stdout, to_stderr).await;
        // Sending fails only if the caller no longer waits for the end.
        let _ = end_sender.send(missing);
    });
    let engine = engine.clone();
    Ok(Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        exit: async move { exit_code(&engine, &id, ended, &doing).await }.boxed(),
    })
}

/// Distributes the output to its streams. Returns true if the engine reported that the program does not exist.
async fn sort(
    mut output: impl Stream<Item = std::result::Result<LogOutput, Error>> + Unpin,
    mut stdout: DuplexStream,
    mut stderr: DuplexStream,
) -> bool {
    let (mut missing, mut first) = (false, true);
    while let Some(piece) = output.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                // The wait for the exit code reports what happened to the process.
                tracing::debug!(%error, "the output of a process was interrupted");
                break;
            }
        };
        let to_stderr = match &piece {
            LogOutput::StdErr { .. } => true,
            // The engine's own messages have no header, or, from old engines, are the only output.
            LogOutput::Console { .. } => true,
            LogOutput::StdOut { message } => {
                first && message.starts_with(b"OCI runtime exec failed: ")
            }
            LogOutput::StdIn { .. } => continue,
        };
        let own = to_stderr && !matches!(piece, LogOutput::StdErr { .. });
        let message = piece.into_bytes();
        if own {
            let text = String::from_utf8_lossy(&message);
            missing |= text.contains("executable file not found")
                || text.contains("no such file or directory");
        }
        first = false;
        // A closed reader affects only its own stream.
        let _ = if to_stderr {
            stderr.write_all(&message).await
        } else {
            stdout.write_all(&message).await
        };
    }
    missing
}

/// Waits for the exit code. The engine does not report the end of an exec, so it is polled: at once when the output
/// ends, and at intervals before that (a child may hold the output open).
async fn exit_code(
    engine: &Engine,
    id: &str,
    mut ended: oneshot::Receiver<bool>,
    doing: &str,
) -> Result<i32> {
    let mut pause = Duration::from_millis(20);
    let (mut open, mut missing) = (true, false);
    loop {
        if open {
            tokio::select! {
                end = &mut ended => {
                    open = false;
                    missing = end.unwrap_or(false);
                    pause = Duration::from_millis(1);
                }
                () = tokio::time::sleep(pause) => {}
            }
        } else {
            tokio::time::sleep(pause).await;
        }
        let state = engine.api.inspect_exec(id).await.doing(doing)?;
        if state.running != Some(true) {
            let code = state.exit_code.and_then(|code| i32::try_from(code).ok());
            if missing && code == Some(126) {
                // Old engines report 126 when a shell would report 127.
                return Ok(127);
            }
            return code.ok_or_else(|| {
                SandboxError::system(format!("{doing}: the engine reported no exit code"))
            });
        }
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}
