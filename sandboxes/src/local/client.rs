//! Client for a jail: starts the launcher, sends requests and delivers the replies.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use tokio::io::{AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{self, Sender};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

use super::protocol::{self, Reply, Request, Setup, Task};
use crate::error::{SandboxError, Shortage};
use crate::mutex::lock;
use crate::sandbox::{Process, Result};

/// Maximum time for setting up a jail, and for its end.
const SETUP_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct Jail {
    shared: Arc<ClientState>,
    socket: tokio::sync::Mutex<Option<OwnedWriteHalf>>,
    keeper: tokio::sync::Mutex<tokio::process::Child>,
    reader: tokio::task::JoinHandle<()>,
    next: AtomicU64,
    /// Protections that are not in force, as texts for people.
    pub missing_protections: Vec<String>,
}

#[derive(Default)]
struct ClientState {
    dead: AtomicBool,
    /// Reason why the keeper ended the sandbox.
    why: Mutex<Option<String>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<i32>>>,
}

impl ClientState {
    fn dead(&self) -> SandboxError {
        let why = lock(&self.why);
        let text = match why.as_deref() {
            Some(why) => format!("reach the sandbox: it was stopped because {why}"),
            None => "reach the sandbox: it has ended".to_owned(),
        };
        SandboxError::dead(text)
    }
}

/// Starts the launcher and waits until the jail is set up. The file `log` gets the launcher's messages.
pub(super) async fn launch(launcher: &[OsString], setup: &Setup, log: &Path) -> Result<Jail> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let (program, arguments) = launcher
        .split_first()
        .ok_or_else(|| SandboxError::input("start a jail: no launcher is configured"))?;
    let keeper = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(log)?)
        .spawn()
        .map_err(|e| {
            let what = format!("start the launcher {}", program.display());
            SandboxError::from_spawn_error(&what, &e)
        })?;
    // This must be dropped after the socket, unless the jail starts.
    let leaving = keeper.id().map(ReapOnDrop::new);
    let (mut read, mut write) = UnixStream::from_std(ours)?.into_split();
    let ready = async {
        let (header, body) = protocol::encode(setup)?;
        write.write_all(&header).await?;
        write.write_all(&body).await?;
        protocol::read_reply(&mut read).await
    };
    let lacking = match tokio::time::timeout(SETUP_TIMEOUT, ready).await {
        Ok(Ok(Reply::Ready { lacking, .. })) => lacking,
        Ok(Ok(Reply::Failed { message })) => return Err(refused(&message)),
        Ok(_) => {
            let log_text = std::fs::read_to_string(log).unwrap_or_default();
            return Err(refused(log_text.trim()));
        }
        Err(_) => return Err(refused("it did not answer in time")),
    };
    std::mem::forget(leaving);
    let shared = Arc::new(ClientState::default());
    Ok(Jail {
        reader: tokio::spawn(read_replies(read, shared.clone())),
        shared,
        socket: tokio::sync::Mutex::new(Some(write)),
        keeper: tokio::sync::Mutex::new(keeper),
        next: AtomicU64::new(0),
        missing_protections: lacking,
    })
}

fn refused(why: &str) -> SandboxError {
    let message = format!("set up the jail: {why}");
    match Shortage::in_message(why) {
        Some(shortage) => SandboxError::exhausted(shortage, message),
        None => SandboxError::unavailable(message),
    }
}

async fn read_replies(mut socket: OwnedReadHalf, shared: Arc<ClientState>) {
    while let Ok(reply) = protocol::read_reply(&mut socket).await {
        let (id, code) = match reply {
            Reply::Exited { id, code } => (id, code),
            Reply::Ended { why } => {
                *lock(&shared.why) = Some(why);
                break;
            }
            Reply::Ready { .. } | Reply::Failed { .. } => continue,
        };
        if let Some(waiting) = lock(&shared.waiting).remove(&id) {
            let _ = waiting.send(code);
        }
    }
    shared.dead.store(true, Ordering::Release);
    lock(&shared.waiting).clear();
}

impl Jail {
    /// Starts a process of the jail.
    pub(super) async fn start(&self, task: Task) -> Result<Process> {
        let (stdin, stdin_inside) = pipe::pipe()?;
        let (stdout_inside, stdout) = pipe::pipe()?;
        let (stderr_inside, stderr) = pipe::pipe()?;
        let streams = [
            stdin_inside.into_blocking_fd()?,
            stdout_inside.into_blocking_fd()?,
            stderr_inside.into_blocking_fd()?,
        ];
        let ended = self.request(task, &streams).await?;
        let shared = self.shared.clone();
        Ok(Process {
            stdin: Box::new(Stdin(Some(stdin))),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            exit: Box::pin(async move { ended.await.map_err(|_| shared.dead()) }),
        })
    }

    async fn request(&self, task: Task, streams: &[OwnedFd]) -> Result<oneshot::Receiver<i32>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (header, body) = protocol::encode(&Request { id, task })?;
        let (exit_sender, ended) = oneshot::channel();
        let mut socket = self.socket.lock().await;
        let Some(socket) = socket.as_mut() else {
            return Err(self.shared.dead());
        };
        lock(&self.shared.waiting).insert(id, exit_sender);
        if self.shared.dead.load(Ordering::Acquire) {
            lock(&self.shared.waiting).clear();
            return Err(self.shared.dead());
        }
        let sent = async {
            let stream: &UnixStream = socket.as_ref();
            let sent = stream
                .async_io(Interest::WRITABLE, || send_header(stream, &header, streams))
                .await?;
            socket
                .write_all(header.get(sent..).unwrap_or_default())
                .await?;
            socket.write_all(&body).await
        };
        match sent.await {
            Ok(()) => Ok(ended),
            Err(_) => {
                lock(&self.shared.waiting).remove(&id);
                Err(self.shared.dead())
            }
        }
    }

    pub(super) async fn health(&self) -> Result<()> {
        self.await_reply(Task::Ping, Duration::from_secs(1)).await
    }

    /// Sends the supervisor a task that needs no process.
    pub(super) async fn run_task(&self, task: Task) -> Result<()> {
        self.await_reply(task, SETUP_TIMEOUT).await
    }

    async fn await_reply(&self, task: Task, timeout: Duration) -> Result<()> {
        let answered = async {
            let answer = self.request(task, &[]).await?;
            answer.await.map_err(|_| self.shared.dead())
        };
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(_)) => {
                let text = "stop the sandbox's processes: some could not be reached";
                Err(SandboxError::system(text))
            }
            Ok(Err(e)) => Err(e),
            Err(_) => Err(SandboxError::dead("reach the sandbox: it does not answer")),
        }
    }

    /// Closes the socket, so that all processes end.
    pub(super) fn abandon(&mut self) -> Option<ReapOnDrop> {
        self.reader.abort();
        self.socket.get_mut().take();
        self.keeper.get_mut().id().map(ReapOnDrop::new)
    }

    /// Ends all processes, and returns when they are gone.
    pub(super) async fn end(&self) -> Result<()> {
        self.shared.dead.store(true, Ordering::Release);
        // The supervisor ends when both directions of the socket are closed.
        self.reader.abort();
        drop(self.socket.lock().await.take());
        let mut keeper = self.keeper.lock().await;
        match tokio::time::timeout(SETUP_TIMEOUT, keeper.wait()).await {
            Ok(result) => {
                result?;
            }
            Err(_) => keeper.kill().await?,
        }
        lock(&self.shared.waiting).clear();
        Ok(())
    }
}

/// A keeper that is ending because its socket was closed. Dropping this value waits for its end.
pub(super) struct ReapOnDrop(nix::unistd::Pid);

impl ReapOnDrop {
    fn new(pid: u32) -> ReapOnDrop {
        ReapOnDrop(nix::unistd::Pid::from_raw(pid.cast_signed()))
    }
}

impl Drop for ReapOnDrop {
    /// Blocks until the keeper has ended (its parent reaps it meanwhile), for a limited time.
    fn drop(&mut self) {
        let step = Duration::from_millis(20);
        let rounds = SETUP_TIMEOUT.as_millis() / step.as_millis();
        for _ in 0..rounds {
            let stat =
                std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next());
            if matches!(state, None | Some('Z')) {
                return;
            }
            std::thread::sleep(step);
        }
    }
}

fn send_header(stream: &UnixStream, header: &[u8; 4], streams: &[OwnedFd]) -> io::Result<usize> {
    let raw: Vec<_> = streams.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights[..] };
    let parts = [IoSlice::new(header)];
    Ok(sendmsg::<()>(
        stream.as_raw_fd(),
        &parts,
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?)
}

/// Writing end of a pipe, which also closes on shutdown, not only when dropped.
struct Stdin(Option<Sender>);

impl AsyncWrite for Stdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Some(pipe) => Pin::new(pipe).poll_write(cx, data),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}
