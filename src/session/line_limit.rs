//! The toolbox's output with a bound on its lines, each of which is a message: code that took the toolbox over could send
//! one without an end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use tokio::io::{AsyncRead, ReadBuf};

/// From so many bytes on a line is too long: the protocol would drop it, and the call wait for its answer. Those of the
/// toolbox itself stay below (`MOST_DATA`).
pub(super) const LINE: usize = DEFAULT_MAX_LINE_LENGTH;

/// Ends in an error where a line is not shorter than [`LINE`].
pub(super) struct LineLimit<R> {
    inner: R,
    /// Bytes since the last line end.
    line: usize,
    exceeded: ExceededFlag,
}

/// Says afterwards whether it ended so: the protocol's own error says only that the stream is closed.
#[derive(Debug, Clone, Default)]
pub(super) struct ExceededFlag(Arc<AtomicBool>);

impl ExceededFlag {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R> LineLimit<R> {
    pub(super) fn new(inner: R, exceeded: ExceededFlag) -> Self {
        LineLimit {
            inner,
            line: 0,
            exceeded,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimit<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let new = &buffer.filled()[before..];
        self.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => new.len() - at - 1,
            None => self.line + new.len(),
        };
        if self.line >= LINE {
            self.exceeded.0.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}
