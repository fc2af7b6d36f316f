//! Accepts connections and serves their requests until shutdown. Unlike `axum::serve`, it limits the time for request
//! headers, the number of connections, and the time for running requests at shutdown, so that clients cannot block the
//! server.

mod slots;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::serve::Listener;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use slots::{Slot, Slots};

/// Maximum bytes of request headers, and of one read.
const MAX_HEAD: usize = 64 << 10;
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Time for request headers, from the start of the connection or the end of the last response.
    pub head: Duration,
    /// Time for running requests at shutdown.
    pub drain: Duration,
    /// Maximum concurrent connections.
    pub connections: usize,
}

impl ConnectionLimits {
    pub(crate) fn new(connections: usize) -> Self {
        ConnectionLimits {
            head: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            connections,
        }
    }
}

/// Serves until `end`, then finishes the running requests within the limits.
pub(crate) async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    end: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD);
    let slots = Slots::new(limits.connections);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut end = std::pin::pin!(end);
    loop {
        // `accept` waits and retries if the system provides no connection.
        let (stream, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut end => break,
        };
        while connections.try_join_next().is_some() {}
        let Some(slot) = slots.take(peer.ip()) else {
            // The write fails only if the client has closed the connection.
            let _ = stream.try_write(BUSY);
            continue;
        };
        let slot = Arc::new(slot);
        let closed = slot.closed();
        let service = counted(router.clone(), slot);
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        connections.spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended");
                    }
                }
                () = closed => tracing::debug!("closed a connection, because there are too many"),
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("aborted requests that did not end in time");
    }
    connections.shutdown().await;
}

/// Wraps the router for a connection: its slot is busy from the request headers to the end of the response.
fn counted(
    router: Router,
    slot: Arc<Slot>,
) -> impl Service<
    hyper::Request<Incoming>,
    Response = Response,
    Error = std::convert::Infallible,
    Future: Send,
> {
    let router = TowerToHyperService::new(router);
    service_fn(move |request| {
        let busy = slot.begin_request();
        let answered = router.call(request);
        async move {
            let response = answered.await?;
            // The body of the response owns the busy slot.
            let keep_busy = move |error: axum::Error| {
                let _busy = &busy;
                error
            };
            Ok(response.map(|body| Body::new(body.map_err(keep_busy))))
        }
    })
}

#[cfg(test)]
mod tests;
