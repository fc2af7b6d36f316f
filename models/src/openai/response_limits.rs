//! Limits on the length of a reply, so that an endpoint that never stops cannot fill the memory.
//!
//! A stream is also passed on line by line, without the fields that no reply needs. The reader of events
//! rescans all that it holds whenever a piece arrives. A long line in many pieces, or many lines in one
//! piece, would therefore take quadratic time.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_openai::error::OpenAIError;
use futures::stream;
use reqwest::{Body, Response};

const MIB: usize = 1 << 20;
/// Maximum bytes of a reply that is not streamed. The longest completions have about 200,000 tokens, or about
/// 1 MiB; the rest is for servers that repeat the prompt.
const WHOLE: usize = 16 * MIB;
/// Maximum bytes of one event in a stream; some servers send the complete reply as the last event.
const EVENT: usize = WHOLE;
/// Maximum bytes of a stream: each token comes in a frame of about 200 bytes.
const STREAM: usize = 64 * MIB;

/// The server sent more than any reply needs.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(super) enum LimitExceeded {
    #[error("a reply of more than {} MiB", WHOLE / MIB)]
    Whole,
    #[error("an event of more than {} MiB in a stream", EVENT / MIB)]
    Event,
    #[error("a stream of more than {} MiB", STREAM / MIB)]
    Stream,
}

/// Keeps how a response ended, because async-openai passes on neither the last event of a stream nor the
/// reason why its reader was stopped.
#[derive(Debug, Clone, Default)]
pub(super) struct ResponseEnd(Arc<End>);

#[derive(Debug, Default)]
struct End {
    exceeded: OnceLock<LimitExceeded>,
    is_done: AtomicBool,
}

impl ResponseEnd {
    /// Returns the reason why the reader was stopped, or otherwise the given error.
    pub(super) fn explain(&self, error: OpenAIError) -> OpenAIError {
        match self.0.exceeded.get() {
            Some(excess) => OpenAIError::Boxed(Box::new(*excess)),
            None => error,
        }
    }

    /// Returns whether the stream ended with `[DONE]`.
    pub(super) fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::Acquire)
    }
}

/// Wraps a response so that its body fails if it exceeds the limits.
pub(super) fn bounded(response: Response, is_stream: bool, watch: ResponseEnd) -> Response {
    let (status, headers) = (response.status(), response.headers().clone());
    let reader = LimitedReader {
        response: Some(response),
        watch,
        total: 0,
        lines: is_stream.then(Lines::default),
        ready: VecDeque::new(),
    };
    let pieces = stream::unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Some((piece, reader))
    });
    let mut bounded = http::Response::new(Body::wrap_stream(pieces));
    *bounded.status_mut() = status;
    *bounded.headers_mut() = headers;
    bounded.into()
}

struct LimitedReader {
    /// Response that is being read; `None` after its end.
    response: Option<Response>,
    watch: ResponseEnd,
    total: usize,
    /// Line splitter; `None` if the body is not a stream of events.
    lines: Option<Lines>,
    ready: VecDeque<Vec<u8>>,
}

impl LimitedReader {
    async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                if self.lines.is_some() && is_done_event(&piece) {
                    self.watch.0.is_done.store(true, Ordering::Release);
                }
                return Some(Ok(piece));
            }
            match self.response.as_mut()?.chunk().await {
                Ok(Some(piece)) => {
                    if let Err(excess) = self.take(&piece) {
                        // Dropping the response closes the connection, as the rest is not needed.
                        self.response = None;
                        let _ = self.watch.0.exceeded.set(excess);
                        return Some(Err(io::Error::other(excess)));
                    }
                }
                Ok(None) => {
                    self.response = None;
                    let last_line = self.lines.take().map(|lines| without_mark(lines.pending));
                    self.ready.extend(last_line.filter(|line| !line.is_empty()));
                }
                Err(error) => {
                    self.response = None;
                    return Some(Err(io::Error::other(error)));
                }
            }
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), LimitExceeded> {
        self.total += piece.len();
        match &mut self.lines {
            Some(_) if self.total > STREAM => Err(LimitExceeded::Stream),
            Some(lines) => lines.add(piece, &mut self.ready),
            None if self.total > WHOLE => Err(LimitExceeded::Whole),
            None => {
                self.ready.push_back(piece.to_vec());
                Ok(())
            }
        }
    }
}

/// Splits a stream of events into lines.
#[derive(Default)]
struct Lines {
    /// Start of an incomplete line.
    pending: Vec<u8>,
    /// Bytes of the event so far, not counting `pending`.
    event: usize,
}

impl Lines {
    fn add(
        &mut self,
        mut piece: &[u8],
        ready: &mut VecDeque<Vec<u8>>,
    ) -> Result<(), LimitExceeded> {
        // Only the next byte shows whether a carriage return ends the line alone.
        if self.pending.ends_with(b"\r") {
            match piece.first() {
                None => return Ok(()),
                Some(b'\n') => {}
                Some(_) => self.end_line(ready),
            }
        }
        while let Some(at) = piece.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            let end = match piece[at..] {
                // The next piece shows whether this is a complete line end.
                [b'\r'] => break,
                [b'\r', b'\n', ..] => at + 2,
                _ => at + 1,
            };
            let (line, rest) = piece.split_at(end);
            self.append(line)?;
            self.end_line(ready);
            piece = rest;
        }
        self.append(piece)
    }

    fn append(&mut self, part: &[u8]) -> Result<(), LimitExceeded> {
        if self.event + self.pending.len() + part.len() > EVENT {
            return Err(LimitExceeded::Event);
        }
        self.pending.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, ready: &mut VecDeque<Vec<u8>>) {
        let line = without_mark(std::mem::take(&mut self.pending));
        let is_blank = matches!(line[..], [b'\n' | b'\r', ..]);
        let is_first = self.event == 0;
        self.event = if is_blank { 0 } else { self.event + line.len() };
        // Comments and ids are dropped; the reader would copy an id for each later event.
        let is_wanted = match is_blank {
            true => !is_first,
            false => line.starts_with(b"data") || line.starts_with(b"event"),
        };
        if is_wanted {
            ready.push_back(line);
        }
    }
}

/// Returns whether a line is the last event of a stream.
fn is_done_event(line: &[u8]) -> bool {
    line.strip_prefix(b"data:")
        .is_some_and(|data| data.trim_ascii() == b"[DONE]")
}

/// Removes the byte order mark that may start a stream, because the reader of events panics on one.
fn without_mark(mut line: Vec<u8>) -> Vec<u8> {
    let mark = "\u{feff}".as_bytes();
    while line.starts_with(mark) {
        line.drain(..mark.len());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines passed on for a stream that arrives in pieces of `size` bytes.
    fn lines_of(text: &str, size: usize) -> Vec<String> {
        let (mut lines, mut ready) = (Lines::default(), VecDeque::new());
        for piece in text.as_bytes().chunks(size) {
            assert_eq!(lines.add(piece, &mut ready), Ok(()));
        }
        ready.extend(
            [without_mark(lines.pending)]
                .into_iter()
                .filter(|l| !l.is_empty()),
        );
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        ready.into_iter().map(text).collect()
    }

    #[test]
    fn lines_do_not_depend_on_pieces() {
        let text = "\u{feff}data: ä\r\n: hello\r\n\r\nid: 7\revent: x\rdata: 1\r\r\n\n\ndata: [\ndata\ndata: ]\n\nretry: 3\ndata: 2";
        let expected = [
            "data: ä\r\n",
            "\r\n",
            "event: x\r",
            "data: 1\r",
            "\r\n",
            "data: [\n",
            "data\n",
            "data: ]\n",
            "\n",
            "data: 2",
        ];
        for size in 1..text.len() {
            assert_eq!(lines_of(text, size), expected, "in pieces of {size}");
        }
    }
}
