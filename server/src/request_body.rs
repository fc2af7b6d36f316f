//! Limits on request bodies: their size, their speed, and the memory that all bodies share.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::authentication::GITHUB_WEBHOOK;
use super::fields::MAX_REQUEST_BYTES;
use super::problem::Problem;

/// Maximum bytes of a request with a few short fields, or with none. The longest field, a hint of 8 KiB, may have three
/// times as many bytes in a form or in escaped JSON.
const MAX_SHORT_REQUEST: usize = 32 << 10;
/// Routes that accept an issue, patches, tests, a dataset, a tool call or a delivery.
const LONG_ROUTES: [&str; 8] = [
    "/new",
    "/comparisons/new",
    "/v1/runs",
    "/v1/comparisons",
    "/v1/matrices",
    "/v1/checks",
    GITHUB_WEBHOOK,
    "/mcp",
];

/// Maximum bytes of an oversized body that the server still reads, so that the client sees the response.
const MAX_DISCARDED: u64 = 16 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(crate) struct BodyLimits {
    /// Time for any body, regardless of its length.
    grace: Duration,
    /// Minimum bytes per second after that time.
    bytes_per_second: u32,
    /// Bytes of each body that do not count towards the shared memory.
    free_bytes: usize,
    /// Bytes beyond those, for all bodies that are being read.
    shared_bytes: usize,
    /// Shared bytes in use.
    held: Arc<AtomicUsize>,
    /// Shared bytes in use by requests to open routes, which have their own share.
    held_by_open: Arc<AtomicUsize>,
}

impl Default for BodyLimits {
    fn default() -> Self {
        BodyLimits {
            grace: Duration::from_secs(20),
            bytes_per_second: 64 << 10,
            free_bytes: 64 << 10,
            shared_bytes: 64 << 20,
            held: Arc::default(),
            held_by_open: Arc::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the request body is too large")]
    Large,
    #[error("the request body did not arrive in time")]
    Slow,
    #[error("the server is reading too many large requests")]
    Overload,
}

impl Refusal {
    fn respond(self, max: usize) -> Response {
        let (status, hint) = match self {
            Refusal::Large => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("send at most {max} bytes"),
            ),
            Refusal::Slow => (
                StatusCode::REQUEST_TIMEOUT,
                "send the whole request at once".to_owned(),
            ),
            Refusal::Overload => (
                StatusCode::SERVICE_UNAVAILABLE,
                "try again in a while".to_owned(),
            ),
        };
        let problem = Problem::new(status, self.to_string()).hint(hint);
        let mut response = problem.into_response();
        // The rest of the body is not read.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        response
    }
}

impl BodyLimits {
    /// Returns the limits of an open route. Strangers share little memory, and none with other clients.
    fn of_open_route(self) -> Self {
        BodyLimits {
            held: self.held_by_open.clone(),
            shared_bytes: self.shared_bytes / 4,
            ..self
        }
    }
}

pub(crate) async fn limit(
    State(limits): State<BodyLimits>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    let max = match LONG_ROUTES.contains(&route) {
        true => MAX_REQUEST_BYTES,
        false => MAX_SHORT_REQUEST,
    };
    let limits = match route == GITHUB_WEBHOOK {
        true => limits.of_open_route(),
        false => limits,
    };
    let declared = request.body().size_hint().lower();
    if declared > max as u64 {
        if declared <= MAX_DISCARDED {
            discard(request.into_body()).await;
        }
        return Refusal::Large.respond(max);
    }
    let refusal = Arc::new(OnceLock::new());
    let request = request.map(|body| {
        let begun = Instant::now();
        Body::new(LimitedBody {
            timeout: Box::pin(sleep_until(begun + limits.grace)),
            begun,
            body,
            max,
            limits,
            received: 0,
            refusal: refusal.clone(),
        })
    });
    let response = next.run(request).await;
    match refusal.get() {
        Some(refusal) => refusal.respond(max),
        None => response,
    }
}

/// Reads a body without keeping it. A connection that is closed before its client has sent everything is reset, and the
/// client may never see the answer.
async fn discard(mut body: Body) {
    let read = async { while let Some(Ok(_)) = body.frame().await {} };
    // A client that is slower may miss the answer.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, read).await;
}

struct LimitedBody {
    body: Body,
    begun: Instant,
    timeout: Pin<Box<Sleep>>,
    max: usize,
    limits: BodyLimits,
    received: usize,
    refusal: Arc<OnceLock<Refusal>>,
}

impl LimitedBody {
    fn refuse<T>(&self, refusal: Refusal) -> Poll<Option<Result<T, BoxError>>> {
        let _ = self.refusal.set(refusal);
        Poll::Ready(Some(Err(refusal.into())))
    }

    /// Bytes of this body that count among the shared ones.
    fn shared(&self) -> usize {
        self.received.saturating_sub(self.limits.free_bytes)
    }

    fn receive(&mut self, bytes: usize) -> Result<(), Refusal> {
        let shared = self.shared();
        self.received += bytes;
        let more = self.shared() - shared;
        let held = self.limits.held.fetch_add(more, Ordering::Relaxed) + more;
        let sent = u64::try_from(self.received).unwrap_or(u64::MAX);
        let due = Duration::from_millis(sent * 1000 / u64::from(self.limits.bytes_per_second));
        self.timeout
            .as_mut()
            .reset(self.begun + self.limits.grace + due);
        if self.received > self.max {
            return Err(Refusal::Large);
        }
        match more > 0 && held > self.limits.shared_bytes {
            true => Err(Refusal::Overload),
            false => Ok(()),
        }
    }
}

impl Drop for LimitedBody {
    fn drop(&mut self) {
        self.limits.held.fetch_sub(self.shared(), Ordering::Relaxed);
    }
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(refusal) = self.refusal.get() {
            return Poll::Ready(Some(Err((*refusal).into())));
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                match self.receive(bytes) {
                    Ok(()) => Poll::Ready(Some(Ok(frame))),
                    Err(refusal) => self.refuse(refusal),
                }
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.timeout.as_mut().poll(context) {
                Poll::Ready(()) => self.refuse(Refusal::Slow),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
