//! The toolbox's output with a bound on its lines, each of which is a message: code that took the toolbox over could send
//! one without an end, or requests of its own, for each of which the protocol holds an answer that the toolbox never reads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use tokio::io::{AsyncRead, ReadBuf};

/// From so many bytes on a line is too long: the protocol would drop it, and the call wait for its answer. Those of the
/// toolbox itself stay below (`MAX_DATA_LEN`).
pub(super) const LINE: usize = DEFAULT_MAX_LINE_LENGTH;

/// Lines that may come before the first request, and more of them for each request. The toolbox sends one.
const MAX_LINES_BEFORE: usize = 64;
const MAX_LINES_PER_REQUEST: usize = 4;

/// Ends in an error if a line is not shorter than [`LINE`], or if there are more lines than [`OutputLimits`] allows.
pub(super) struct LineLimit<R> {
    inner: R,
    /// Bytes since the last line end.
    line: usize,
    lines: usize,
    limits: OutputLimits,
}

/// How much a toolbox may send. Says afterwards which limit it exceeded: the protocol's own error says only that the stream
/// is closed.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputLimits(Arc<LimitState>);

#[derive(Debug, Default)]
struct LimitState {
    requests: AtomicUsize,
    has_long_line: AtomicBool,
    has_many_lines: AtomicBool,
}

impl OutputLimits {
    /// To be called before each request.
    pub(super) fn add_request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// What was wrong with what the toolbox sent.
    pub(super) fn exceeded(&self) -> Option<String> {
        if self.0.has_long_line.load(Ordering::Relaxed) {
            return Some(format!("it sent a line of more than {} MiB", LINE >> 20));
        }
        let has_many_lines = self.0.has_many_lines.load(Ordering::Relaxed);
        has_many_lines.then(|| "it sent more messages than it was asked for".to_owned())
    }

    fn max_lines(&self) -> usize {
        MAX_LINES_BEFORE + MAX_LINES_PER_REQUEST * self.0.requests.load(Ordering::Relaxed)
    }
}

impl<R> LineLimit<R> {
    pub(super) fn new(inner: R, limits: OutputLimits) -> Self {
        LineLimit {
            inner,
            line: 0,
            lines: 0,
            limits,
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
        self.lines += new.iter().filter(|byte| **byte == b'\n').count();
        let first_end = new.iter().position(|byte| *byte == b'\n');
        let longest = self.line + first_end.unwrap_or(new.len());
        self.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => new.len() - at - 1,
            None => longest,
        };
        let exceeded = if longest.max(self.line) >= LINE {
            &self.limits.0.has_long_line
        } else if self.lines > self.limits.max_lines() {
            &self.limits.0.has_many_lines
        } else {
            return Poll::Ready(Ok(()));
        };
        exceeded.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::InvalidData.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_long_line_that_ends_is_refused() {
        for (bytes, is_refused) in [(LINE - 1, false), (LINE, true)] {
            let text = [vec![b'x'; bytes], b"\nshort\n".to_vec()].concat();
            let limits = OutputLimits::default();
            let mut read = LineLimit::new(&text[..], limits.clone());
            // The end of the line comes in the read that crosses the limit.
            let mut buffer = vec![0; text.len()];
            assert_eq!(read.read(&mut buffer).await.is_err(), is_refused);
            assert_eq!(limits.exceeded().is_some(), is_refused);
        }
    }
}
