//! The host's end of the relay (`relay.py`), which carries connections out of a sandbox without a network.
//!
//! The relay's messages are untrusted, because code in the sandbox can take its place. An invalid frame ends the relay.
//! The host buffers at most [`WINDOW_BYTES`] bytes for each of [`MAX_CONNECTIONS`] connections, however small the frames are.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Result, Sandbox};

const RELAY: &str = include_str!("relay.py");

const READY: u8 = 0;
const OPEN: u8 = 1;
const DATA: u8 = 2;
const CREDIT_FRAME: u8 = 3;
const END_FRAME: u8 = 4;
const RESET: u8 = 5;

/// Maximum bytes of a frame's content, and of a connection's data in transit. Both are the same in `relay.py`.
const CHUNK: usize = 1 << 16;
const WINDOW_BYTES: usize = 1 << 18;

/// Maximum concurrent connections. The relay accepts fewer.
const MAX_CONNECTIONS: usize = 160;

/// Time limit for the start of the relay.
const START_TIMEOUT: Duration = Duration::from_secs(60);

type Outgoing = mpsc::Sender<(u8, u32, Bytes)>;

/// A running relay. Dropping it stops it.
pub(super) struct Relay {
    /// Port on the sandbox's own loopback.
    pub port: u16,
    _task: JoinSet<()>,
}

impl Relay {
    /// Starts the relay in a sandbox. `accept` gets each connection.
    pub(super) async fn start(
        sandbox: &dyn Sandbox,
        python: &str,
        accept: impl Fn(DuplexStream) + Send + Sync + 'static,
    ) -> Result<Relay> {
        let command = Command {
            directory: Some("/".into()),
            ..Command::new([python, "-I", "-S", "-c", RELAY])
        };
        let mut process = sandbox.spawn(&command).await?;
        let mut messages = Vec::new();
        let hello = async {
            match read(&mut process.stdout).await {
                Ok((READY, port, _)) => u16::try_from(port).ok(),
                _ => None,
            }
        };
        let port = match tokio::time::timeout(START_TIMEOUT, hello).await {
            Ok(Some(port)) => port,
            answer => {
                if answer.is_ok() {
                    let _ = process.stderr.take(4096).read_to_end(&mut messages).await;
                }
                let messages = String::from_utf8_lossy(&messages);
                let last = messages
                    .trim()
                    .lines()
                    .last()
                    .unwrap_or("it does not respond");
                let text = format!("start the relay for packages with {python}: {last}");
                return Err(SandboxError::new(ErrorKind::Build, text)
                    .hint("use an image with CPython 3.6 or later"));
            }
        };
        let mut task = JoinSet::new();
        task.spawn(async move {
            let drain = async {
                let _ = tokio::io::copy(&mut process.stderr, &mut tokio::io::sink()).await;
            };
            let relay = run_relay(process.stdin, process.stdout, accept);
            if let (Err(error), ()) = tokio::join!(relay, drain) {
                tracing::debug!(%error, "the relay of a sandbox ended");
            }
            let _ = process.exit.await;
        });
        Ok(Relay { port, _task: task })
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, u32, Bytes)> {
    let (kind, number) = (stream.read_u8().await?, stream.read_u32().await?);
    let length = stream.read_u32().await? as usize;
    if length > CHUNK {
        return Err(broken("a frame is too long"));
    }
    let mut content = vec![0; length];
    stream.read_exact(&mut content).await?;
    Ok((kind, number, content.into()))
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// One connection on the host's side.
struct Connection {
    /// Pipe to the task that writes to the connection, closed after `END_FRAME`. Its buffer holds the whole window, so a
    /// write never blocks.
    incoming: Option<DuplexStream>,
    /// Free bytes of the window in each direction.
    receive_window: Arc<Semaphore>,
    send_window: Arc<Semaphore>,
    task: AbortHandle,
}

async fn run_relay(
    stdin: impl AsyncWrite + Send + Unpin + 'static,
    stdout: impl AsyncRead + Send + Unpin,
    accept: impl Fn(DuplexStream),
) -> io::Result<()> {
    let (outgoing, frames) = mpsc::channel(64);
    // All tasks end with this call.
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ = write(stdin, frames).await;
        None
    });
    let mut stdout = tokio::io::BufReader::with_capacity(CHUNK, stdout);
    let mut connections: HashMap<u32, Connection> = HashMap::new();
    loop {
        let frame = {
            // Reading a frame must not be cancelled halfway.
            let next = read(&mut stdout);
            tokio::pin!(next);
            loop {
                tokio::select! {
                    frame = &mut next => break frame,
                    Some(result) = tasks.join_next() => {
                        if let Ok(Some(number)) = result {
                            connections.remove(&number);
                        }
                    }
                }
            }
        };
        let (kind, number, content) = frame?;
        match kind {
            OPEN => {
                while let Some(result) = tasks.try_join_next() {
                    if let Ok(Some(number)) = result {
                        connections.remove(&number);
                    }
                }
                // Tasks are counted instead of entries, because those of reset connections may still be ending.
                if tasks.len() > MAX_CONNECTIONS || connections.contains_key(&number) {
                    return Err(broken("too many connections"));
                }
                let (ours, theirs) = tokio::io::duplex(CHUNK);
                let (from, to) = tokio::io::split(ours);
                let (incoming, coming) = tokio::io::duplex(WINDOW_BYTES);
                let may_come = Arc::new(Semaphore::new(WINDOW_BYTES));
                let may_go = Arc::new(Semaphore::new(WINDOW_BYTES));
                let (back, free_to_come) = (outgoing.clone(), may_come.clone());
                let (forth, free_to_go) = (outgoing.clone(), may_go.clone());
                let task = tasks.spawn(async move {
                    // Each direction ends on its own: a complete response must arrive even if the rest of the request
                    // is never read.
                    let _ = tokio::join!(
                        copy_from_sandbox(number, coming, to, back, free_to_come),
                        copy_to_sandbox(number, from, forth, free_to_go)
                    );
                    Some(number)
                });
                let connection = Connection {
                    incoming: Some(incoming),
                    receive_window: may_come,
                    send_window: may_go,
                    task,
                };
                connections.insert(number, connection);
                accept(theirs);
            }
            // An empty frame would not use the window, but would cost time and memory.
            DATA if content.is_empty() => return Err(broken("an empty frame")),
            // Data for a connection that has meanwhile ended is not an error.
            DATA => {
                if let Some(connection) = connections.get_mut(&number) {
                    let Ok(permits) = connection
                        .receive_window
                        .try_acquire_many(content.len() as u32)
                    else {
                        return Err(broken("more than the window"));
                    };
                    permits.forget();
                    if let Some(incoming) = &mut connection.incoming {
                        // Fails if the connection is no longer read.
                        let _ = incoming.write_all(&content).await;
                    }
                }
            }
            CREDIT_FRAME => {
                let Ok(amount) = <[u8; 4]>::try_from(content.as_ref()) else {
                    return Err(broken("credit without an amount"));
                };
                let amount = u32::from_be_bytes(amount) as usize;
                if let Some(connection) = connections.get(&number) {
                    if amount
                        > WINDOW_BYTES
                            - connection.send_window.available_permits().min(WINDOW_BYTES)
                    {
                        return Err(broken("more credit than the window"));
                    }
                    connection.send_window.add_permits(amount);
                }
            }
            END_FRAME => {
                if let Some(connection) = connections.get_mut(&number) {
                    connection.incoming = None;
                }
            }
            RESET => {
                if let Some(connection) = connections.remove(&number) {
                    connection.task.abort();
                }
            }
            _ => return Err(broken("a frame of an unknown kind")),
        }
    }
}

/// Copies data from the sandbox to the connection.
async fn copy_from_sandbox(
    number: u32,
    mut coming: DuplexStream,
    mut to: WriteHalf<DuplexStream>,
    outgoing: Outgoing,
    may_come: Arc<Semaphore>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = coming.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        may_come.add_permits(count);
        let amount = (count as u32).to_be_bytes();
        let credit = (CREDIT_FRAME, number, Bytes::copy_from_slice(&amount));
        outgoing.send(credit).await.map_err(|_| gone())?;
    }
}

/// Copies data from the connection to the sandbox.
async fn copy_to_sandbox(
    number: u32,
    mut from: ReadHalf<DuplexStream>,
    outgoing: Outgoing,
    may_go: Arc<Semaphore>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            let end = (END_FRAME, number, Bytes::new());
            return outgoing.send(end).await.map_err(|_| gone());
        }
        let permits = may_go.acquire_many(count as u32).await;
        permits.map_err(|_| gone())?.forget();
        let data = (DATA, number, Bytes::copy_from_slice(&buffer[..count]));
        outgoing.send(data).await.map_err(|_| gone())?;
    }
}

fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<(u8, u32, Bytes)>,
) -> io::Result<()> {
    while let Some((kind, number, content)) = frames.recv().await {
        let mut frame = Vec::with_capacity(9 + content.len());
        frame.push(kind);
        frame.extend_from_slice(&number.to_be_bytes());
        frame.extend_from_slice(&(content.len() as u32).to_be_bytes());
        frame.extend_from_slice(&content);
        stdin.write_all(&frame).await?;
        stdin.flush().await?;
    }
    Ok(())
}

/// Carries the frames of `first`, and then those of `again` `rounds` times, for the fuzz targets.
///
/// Opened connections send back what they receive, or are never read. Returns the number of opened connections, up to
/// the maximum.
#[cfg(fuzzing)]
pub async fn carry_frames(first: &[u8], again: &[u8], rounds: usize, is_read: bool) -> usize {
    let (mut frames, stdout) = tokio::io::duplex(CHUNK);
    let feed = async move {
        let mut sent = frames.write_all(first).await;
        for _ in 0..rounds {
            if sent.is_ok() {
                sent = frames.write_all(again).await;
            }
        }
        drop(frames);
        std::future::pending::<()>().await;
    };
    let (mut opened, mut held) = (0, std::collections::VecDeque::new());
    let accept = std::sync::Mutex::new(|stream: DuplexStream| {
        opened = (opened + 1).min(MAX_CONNECTIONS);
        if is_read {
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
            return;
        }
        held.push_back(stream);
        held.truncate(MAX_CONNECTIONS);
    });
    tokio::select! {
        _ = run_relay(tokio::io::sink(), stdout, |stream| (super::lock(&accept))(stream)) => {}
        () = feed => {}
    }
    drop(accept);
    opened
}

#[cfg(test)]
mod tests;
