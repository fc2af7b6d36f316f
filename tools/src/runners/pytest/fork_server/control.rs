//! A socket for requests with descriptors, and their answers.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Result, ToolError};
use crate::process::{self, ProcessOutput, ProcessReport, interrupt};

/// Maximum bytes of an answer.
const MAX_ANSWER_LEN: usize = 4096;

pub(crate) struct Control {
    socket: OwnedFd,
    unanswered: usize,
}

#[derive(Deserialize)]
struct ForkResponse {
    pid: i32,
}

impl Control {
    /// Creates a socket pair: one end, and the other for a new process.
    pub(crate) fn pair() -> Result<(Control, OwnedFd)> {
        let (socket, other) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )
        .map_err(std::io::Error::from)?;
        let control = Control {
            socket,
            unanswered: 0,
        };
        Ok((control, other))
    }

    /// Returns how many requests have no received answer yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Sends a request without blocking; fails if it does not fit into the socket's buffer.
    pub(crate) fn send(&mut self, request: &Value, fds: &[OwnedFd]) -> Result<()> {
        let bytes = request.to_string();
        let fds: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let text = [IoSlice::new(bytes.as_bytes())];
        let rights = [ControlMessage::ScmRights(&fds)];
        sendmsg::<()>(self.socket.as_raw_fd(), &text, &rights, flags, None)
            .map_err(std::io::Error::from)?;
        self.unanswered += 1;
        Ok(())
    }

    /// Asks for a new process, which must exist at `fork_deadline`, and waits for its end. Keeps at most `keep` bytes of
    /// its output.
    pub(crate) fn run(
        &mut self,
        request: &Value,
        keep: usize,
        fork_deadline: Instant,
        deadline: Instant,
        report: &mut ProcessReport,
    ) -> Result<ProcessOutput> {
        let (output, writer) = std::io::pipe()?;
        let writers: [OwnedFd; 2] = [writer.into(), report.writer()?];
        let fork = move || {
            self.send(request, &writers)?;
            let forked: Option<ForkResponse> = self.receive(fork_deadline);
            let pid = forked.map(|forked| forked.pid);
            pid.ok_or_else(|| ToolError::Broken("the fork server created no process".to_owned()))
        };
        process::run_forked(fork, output.into(), keep, deadline, report)
    }

    /// Receives the next answer; `None` after the deadline, an interruption or the end of the connection.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self, deadline: Instant) -> Option<T> {
        let mut buffer = [0; MAX_ANSWER_LEN];
        loop {
            let remaining_time = deadline.saturating_duration_since(Instant::now());
            if remaining_time.is_zero() || interrupt::is_raised() {
                return None;
            }
            let wait = PollTimeout::try_from(remaining_time + Duration::from_millis(1))
                .unwrap_or(PollTimeout::MAX);
            let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
            let mut fds = vec![readable(self.socket.as_fd())];
            fds.extend(interrupt::descriptor().map(readable));
            match poll(&mut fds, wait) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) if interrupt::is_raised() => return None,
                Ok(_) => {}
                Err(_) => return None,
            }
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).ok()?;
            self.unanswered = self.unanswered.saturating_sub(1);
            return serde_json::from_slice(buffer.get(..length)?).ok();
        }
    }
}
