//! MCP on standard input and output, one message per line. An invalid line gets an error response and does not end the
//! connection.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::McpClient;
use super::message::{self, Unreadable};
use testwright_config::error::{self, Error};
use testwright_config::lock::lock;

/// Maximum bytes of a line. The arguments of a call may have 12 MiB.
const MAX_LINE: usize = 16 << 20;
/// Maximum number of messages that wait to be handled.
const QUEUE: usize = 16;

/// Serves a client on standard input and output until it disconnects. Boxed, so that other crates need not compile it
/// again.
///
/// # Errors
///
/// Fails with an infrastructure error if no client initializes the connection, or the connection breaks.
pub fn serve_stdio(client: McpClient) -> BoxFuture<'static, error::Result<()>> {
    let failed = |what: &str, error: String| {
        Error::infrastructure(format!("serve MCP: {what}")).cause(error)
    };
    Box::pin(async move {
        let running = client
            .serve(LineTransport::new(tokio::io::stdin(), tokio::io::stdout()))
            .await
            .map_err(|error| failed("no client initialized the connection", error.to_string()))?;
        running
            .waiting()
            .await
            .map(drop)
            .map_err(|error| failed("the connection failed", error.to_string()))
    })
}

struct LineTransport<W> {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Output<W>,
    unanswered: UnansweredIds,
}

/// Ids of unanswered requests, including cancelled ones, which never get a response.
type UnansweredIds = Arc<Mutex<HashSet<RequestId>>>;

type Output<W> = Arc<tokio::sync::Mutex<W>>;

async fn write_message<W: AsyncWrite + Unpin>(
    output: &Output<W>,
    message: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineTransport<W> {
    /// Starts reading messages.
    fn new(input: impl AsyncRead + Send + Unpin + 'static, output: W) -> Self {
        let (sender, messages) = mpsc::channel(QUEUE);
        let output = Arc::new(tokio::sync::Mutex::new(output));
        let unanswered = UnansweredIds::default();
        let reader = MessageReader {
            lines: BufReader::new(input),
            output: output.clone(),
            unanswered: unanswered.clone(),
            messages: sender,
            is_initialized: false,
        };
        tokio::spawn(reader.run());
        LineTransport {
            messages,
            output,
            unanswered,
        }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            lock(&self.unanswered).remove(id);
        }
        let output = self.output.clone();
        async move { write_message(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.messages.close();
        Ok(())
    }
}

struct MessageReader<R, W> {
    lines: R,
    output: Output<W>,
    unanswered: UnansweredIds,
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    /// Whether the first `initialize` was read. The library ends the connection if anything but a request comes before
    /// it.
    is_initialized: bool,
}

impl<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin> MessageReader<R, W> {
    /// Reads messages until the input or the connection ends, or the output fails.
    async fn run(mut self) {
        loop {
            let line = match read_line(&mut self.lines, MAX_LINE).await {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!(%error, "could not read standard input");
                    return;
                }
            };
            let message = match line {
                Line::End => return,
                Line::TooLong => Err(Unreadable::too_long(MAX_LINE)),
                Line::Whole(line) if line.trim_ascii().is_empty() => continue,
                Line::Whole(line) => message::read(&line).map(|read| read.message),
            };
            let is_open = match message.and_then(|message| self.check_id(message)) {
                Ok(message) => self.forward(message).await,
                Err(unreadable) if unreadable.is_notification => true,
                Err(unreadable) => write_message(&self.output, &unreadable.answer())
                    .await
                    .is_ok(),
            };
            if !is_open {
                return;
            }
        }
    }

    fn check_id(&self, message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Unreadable> {
        match &message {
            ClientJsonRpcMessage::Request(request)
                if !lock(&self.unanswered).insert(request.id.clone()) =>
            {
                Err(Unreadable::reused_id(&request.id))
            }
            _ => Ok(message),
        }
    }

    /// Passes a message on; `false` if the connection has ended.
    async fn forward(&mut self, message: ClientJsonRpcMessage) -> bool {
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                self.is_initialized |=
                    matches!(request.request, ClientRequest::InitializeRequest(_));
            }
            _ if !self.is_initialized => return true,
            _ => {}
        }
        self.messages.send(message).await.is_ok()
    }
}

enum Line {
    /// A line without its terminator; the last line may have none.
    Whole(Vec<u8>),
    /// A line that exceeded the maximum and was dropped.
    TooLong,
    End,
}

async fn read_line(input: &mut (impl AsyncBufRead + Unpin), max: usize) -> io::Result<Line> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() && line.is_empty() && !is_too_long {
            return Ok(Line::End);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        is_too_long |= line.len() + part.len() > max;
        match is_too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(part),
        }
        let is_over = end.is_some() || available.is_empty();
        let consumed = part.len() + usize::from(end.is_some());
        input.consume(consumed);
        if is_over {
            return Ok(match is_too_long {
                true => Line::TooLong,
                false => Line::Whole(line),
            });
        }
    }
}
