//! MCP with the toolbox over the standard streams of its process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, PingRequest,
    RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::Value;
use testwright_sandboxes::{Command, Process, Sandbox, SandboxError};
use testwright_tools::DIGEST;
use testwright_tools::config::Config;
use testwright_tools::process::confinement::Layers;
use testwright_tools::program::NAME;
use testwright_tools::tool::Tool;
use testwright_tools::tools::Handshake;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use super::CallAnswer;
use super::line_limit::{LineLimit, OutputLimits};

/// Timeout for the toolbox's first answer: it reads the workspace first, on a machine that may be busy.
const HELLO: Duration = Duration::from_secs(120);
/// Time after a call's deadline in which an answer may still arrive, because the toolbox must end processes
/// and report.
const GRACE: Duration = Duration::from_secs(15);
/// Timeout for a ping; a living toolbox answers one even while a tool is running.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait for the error message of a toolbox that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Maximum bytes of the toolbox's stderr to keep for an error message.
const STDERR: usize = 4_000;

/// Returns the path of this program, which is copied into sandboxes as the toolbox. So there is one file to
/// ship, and host and sandbox never differ in version.
///
/// # Errors
///
/// Fails if this program is linked dynamically.
pub fn toolbox() -> Result<&'static Path, SandboxError> {
    // Containers have none of this machine's libraries.
    if cfg!(not(target_feature = "crt-static")) {
        let what = "this testwright is linked dynamically, and would not start in a sandbox; build it in its own folder, \
                    or with RUSTFLAGS='-C target-feature=+crt-static' and --target host-tuple";
        return Err(SandboxError::system(what));
    }
    // This path works even if the file has been replaced since.
    Ok(Path::new("/proc/self/exe"))
}

pub(super) struct Connection {
    /// Protections that keep programs in the sandbox away from the toolbox.
    pub layers: Layers,
    client: RunningService<RoleClient, ()>,
    stderr: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    limits: OutputLimits,
}

impl Connection {
    /// Starts the toolbox; `program` is where [`upload`] put it.
    pub(super) async fn open(
        sandbox: &dyn Sandbox,
        program: &Path,
        config: &Config,
    ) -> Result<Self, SandboxError> {
        let program = program.to_string_lossy().into_owned();
        let config = serde_json::to_string(config).map_err(not_encoded)?;
        let command = [program, "serve".to_owned(), "--config".to_owned(), config];
        let process = sandbox.spawn(&Command::new(command)).await?;
        let mut connection = Self::with(process).await?;
        connection.layers = connection.handshake().await?;
        Ok(connection)
    }

    /// Sends the greeting to the server process.
    async fn with(process: Process) -> Result<Self, SandboxError> {
        let Process {
            stdin,
            stdout,
            mut stderr,
            exit,
        } = process;
        let stderr_bytes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = stderr_bytes.clone();
        let printing = tokio::spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok(n) = stderr.read(&mut buffer).await {
                if n == 0 {
                    break;
                }
                if let Ok(mut bytes) = sink.lock() {
                    let room = STDERR.saturating_sub(bytes.len());
                    bytes.extend_from_slice(&buffer[..n.min(room)]);
                }
            }
        });
        let limits = OutputLimits::default();
        let lines = LineLimit::new(stdout, limits.clone());
        let client = match tokio::time::timeout(HELLO, ().serve((lines, stdin))).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the toolbox was not greeted");
                // Its last output may still be on the way.
                let ended = async { (printing.await, exit.await) };
                let code = match tokio::time::timeout(LAST_WORDS, ended).await {
                    Ok((_, Ok(code))) => format!(" with code {code}"),
                    _ => String::new(),
                };
                let problem = format!("the tool server ended{code} before it answered");
                return Err(dead(&ended_by(&limits, &problem), &stderr_bytes));
            }
            Err(_) => return Err(dead("the tool server did not answer", &stderr_bytes)),
        };
        Ok(Connection {
            layers: Layers::default(),
            client,
            stderr: stderr_bytes,
            limits,
        })
    }

    /// Checks that the toolbox in the sandbox is this program.
    async fn handshake(&self) -> Result<Layers, SandboxError> {
        let answer = self
            .call(Handshake::NAME, Value::Object(Default::default()), HELLO)
            .await?;
        let field = |key: &str| answer.data[key].as_str().unwrap_or_default();
        let (version, digest) = (field("version"), field("digest"));
        if version != env!("CARGO_PKG_VERSION") || digest != DIGEST {
            return Err(self.dead(&format!(
                "the toolbox in the sandbox is another one: version {version}, digest {digest}; expected {}, {DIGEST}",
                env!("CARGO_PKG_VERSION"),
            )));
        }
        let layers = answer.data.get("layers").cloned().unwrap_or_default();
        Ok(serde_json::from_value(layers).unwrap_or_default())
    }

    /// Calls a tool. If the future is dropped before the answer, the call is cancelled, and the toolbox stops
    /// what it started.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<CallAnswer, SandboxError> {
        let Value::Object(arguments) = arguments else {
            let text = format!("the arguments of `{tool}` must be an object");
            return Ok(CallAnswer::refused(text));
        };
        let mut parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut meta = RequestMetaObject::default();
        meta.0.insert(
            "testwright/deadline_ms".to_owned(),
            Value::from(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        );
        parameters.meta = Some(meta);
        self.limits.add_request();
        match tokio::time::timeout(deadline + GRACE, self.request(parameters)).await {
            Ok(Ok(result)) => Ok(CallAnswer {
                text: (result.content.iter())
                    .filter_map(|block| Some(block.as_text()?.text.as_str()))
                    .collect::<Vec<_>>()
                    .join("\n"),
                data: result.structured_content.unwrap_or_default(),
                refused: result.is_error == Some(true),
                ended: false,
            }),
            Ok(Err(ServiceError::McpError(error))) => {
                let text = format!("run `{tool}` in the sandbox: {}", error.message);
                Err(SandboxError::system(text))
            }
            Ok(Err(error)) => Err(self.gone(&error)),
            Err(_) => Err(self.dead(&format!("the toolbox did not answer a call of `{tool}`"))),
        }
    }

    async fn request(
        &self,
        parameters: CallToolRequestParams,
    ) -> Result<CallToolResult, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let peer = self.client.peer().clone();
        let (waiting, dropped) = oneshot::channel::<()>();
        // A separate task, because this future may be dropped while the request is being sent.
        let call = tokio::spawn(async move {
            let options = PeerRequestOptions::no_options();
            let mut call = peer.send_cancellable_request(request, options).await?;
            tokio::select! {
                answer = &mut call.rx => answer.map_err(|_| ServiceError::TransportClosed)?,
                _ = dropped => {
                    call.cancel(None).await?;
                    Err(ServiceError::Cancelled { reason: None })
                }
            }
        });
        let answer = call.await.map_err(|_| ServiceError::TransportClosed)?;
        drop(waiting);
        match answer? {
            ServerResult::CallToolResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    pub(super) async fn ping(&self) -> Result<(), SandboxError> {
        self.limits.add_request();
        let ping = self
            .client
            .peer()
            .send_request(ClientRequest::PingRequest(PingRequest::default()));
        match tokio::time::timeout(PING_TIMEOUT, ping).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.gone(&error)),
            Err(_) => Err(self.dead("the toolbox does not answer")),
        }
    }

    fn gone(&self, error: &ServiceError) -> SandboxError {
        // The error's text names types of the protocol library.
        tracing::debug!(%error, "the toolbox is gone");
        let problem = match error {
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                "the tool server has ended"
            }
            _ => "the answer of the tool server cannot be read",
        };
        self.dead(&ended_by(&self.limits, problem))
    }

    fn dead(&self, what: &str) -> SandboxError {
        dead(what, &self.stderr)
    }
}

/// Adds the reason, if it is known.
fn ended_by(limits: &OutputLimits, problem: &str) -> String {
    match limits.exceeded() {
        Some(why) => format!("{problem}: {why}"),
        None => problem.to_owned(),
    }
}

/// Calls a toolbox that answers with these bytes, for the fuzz targets.
///
/// # Errors
///
/// Fails if the bytes are not the answer to the call.
#[cfg(fuzzing)]
pub async fn call_answered_by(bytes: Vec<u8>) -> Result<CallAnswer, SandboxError> {
    const GREETING: &[u8] = br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"f","version":"0"}}}"#;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let (stdin, requests) = tokio::io::duplex(1 << 16);
    let (mut answers, stdout) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let mut requests = BufReader::new(requests).lines();
        while let Ok(Some(line)) = requests.next_line().await {
            if line.contains("\"initialize\"") {
                let _ = answers.write_all(&[GREETING, b"\n"].concat()).await;
            } else if line.contains("\"tools/call\"") {
                // Stop reading, as a toolbox that is gone would.
                let _ = answers.write_all(&bytes).await;
                return;
            }
        }
    });
    let process = Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(tokio::io::empty()),
        exit: Box::pin(std::future::pending()),
    };
    let connection = Connection::with(process).await?;
    let called = connection.call("search", Value::Object(Default::default()), HELLO);
    called.await
}

fn dead(what: &str, stderr: &std::sync::Mutex<Vec<u8>>) -> SandboxError {
    let printed = stderr
        .lock()
        .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        .unwrap_or_default();
    let message = if printed.is_empty() {
        format!("talk to the sandbox: {what}")
    } else {
        format!("talk to the sandbox: {what} (it printed: {printed})")
    };
    SandboxError::dead(message)
}

/// Copies the toolbox into a sandbox, and returns its path.
pub(super) async fn upload(sandbox: &dyn Sandbox) -> Result<PathBuf, SandboxError> {
    let program = sandbox.info().paths.toolbox.join(NAME);
    sandbox.upload_file(&program, toolbox()?, 0o755).await?;
    Ok(program)
}

/// Returns the command prefix that starts a program without access to the toolbox.
pub(super) fn confine(program: &Path, config: &Config) -> Result<Vec<String>, SandboxError> {
    config.confine(program).map_err(not_encoded)
}

fn not_encoded(error: serde_json::Error) -> SandboxError {
    let text = format!("encode the toolbox's settings: {error}");
    SandboxError::system(text)
}

#[cfg(test)]
mod tests;
