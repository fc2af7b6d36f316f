//! A limit on the toolbox's output, in which each line is a message. Code that took over the toolbox could
//! send an endless line. It could also send requests of its own, for each of which the protocol library keeps
//! an answer that the toolbox never reads.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use tokio::io::{AsyncRead, ReadBuf};

/// Maximum bytes of a line. The protocol would drop a longer one, and the call would wait for its answer. The
/// toolbox's own lines are shorter (`MAX_DATA_LEN`).
pub(super) const MAX_LINE_LEN: usize = DEFAULT_MAX_LINE_LENGTH;

/// Maximum lines before the first request. The toolbox sends one.
const MAX_LINES_BEFORE: usize = 64;
const MAX_LINES_PER_REQUEST: usize = 4;

/// A reader that fails if a line is not shorter than [`MAX_LINE_LEN`], or if there are more lines than
/// [`OutputLimits`] allows.
pub(super) struct LineLimit<R> {
    inner: R,
    /// Bytes since the last newline.
    line: usize,
    lines: usize,
    limits: OutputLimits,
}

/// The limits on a toolbox's output. Afterwards they tell which limit was exceeded, because the protocol's
/// own error only says that the stream is closed.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputLimits(Arc<LimitState>);

#[derive(Debug, Default)]
struct LimitState {
    requests: AtomicUsize,
    exceeded: OnceLock<String>,
}

impl OutputLimits {
    /// Counts a request; must be called before each one.
    pub(super) fn add_request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns which limit the output exceeded.
    pub(super) fn exceeded(&self) -> Option<&str> {
        self.0.exceeded.get().map(String::as_str)
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
        let exceeded = if longest.max(self.line) >= MAX_LINE_LEN {
            format!("it sent a line of more than {} MiB", MAX_LINE_LEN >> 20)
        } else if self.lines > self.limits.max_lines() {
            "it sent more messages than requested".to_owned()
        } else {
            return Poll::Ready(Ok(()));
        };
        let _ = self.limits.0.exceeded.set(exceeded);
        Poll::Ready(Err(io::ErrorKind::InvalidData.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn long_line_is_refused() {
        for (bytes, is_refused) in [(MAX_LINE_LEN - 1, false), (MAX_LINE_LEN, true)] {
            let text = [vec![b'x'; bytes], b"\nshort\n".to_vec()].concat();
            let limits = OutputLimits::default();
            let mut read = LineLimit::new(&text[..], limits.clone());
            // The end of the line arrives in the read that crosses the limit.
            let mut buffer = vec![0; text.len()];
            assert_eq!(read.read(&mut buffer).await.is_err(), is_refused);
            assert_eq!(limits.exceeded().is_some(), is_refused);
        }
    }
}
