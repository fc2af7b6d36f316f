//! Accepts connections and serves their requests until shutdown. Unlike `axum::serve`, it limits the time for request
//! headers, the number of connections, and the time for running requests at shutdown, so that clients cannot block the
//! server.

mod slots;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use axum::serve::Listener;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use slots::{BusySlot, Slot, Slots};

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
            Ok(response.map(|body| Body::new(CountedBody { body, _busy: busy })))
        }
    })
}

struct CountedBody {
    body: Body,
    _busy: BusySlot,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    const CLOSING: &[u8] = b"GET /slow HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    const REQUEST: &[u8] = b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n";

    const QUICK: ConnectionLimits = ConnectionLimits {
        head: Duration::from_millis(100),
        ..LIMITS
    };

    struct Serving {
        address: std::net::SocketAddr,
        end: oneshot::Sender<()>,
        served: tokio::task::JoinHandle<()>,
    }

    const LIMITS: ConnectionLimits = ConnectionLimits {
        head: Duration::from_secs(30),
        drain: Duration::from_secs(30),
        connections: 2,
    };

    async fn serving(limits: ConnectionLimits) -> Serving {
        let slow = async || {
            tokio::time::sleep(Duration::from_millis(300)).await;
            "done"
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let router = Router::new()
            .route("/slow", get(slow))
            .route("/body", post(async |body: String| body));
        let served = tokio::spawn(serve(listener, router, limits, async { drop(ended.await) }));
        Serving {
            address,
            end,
            served,
        }
    }

    async fn answer(stream: &mut TcpStream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn incomplete_request_closes_connection() {
        let serving = serving(QUICK).await;
        for partial_request in [&b""[..], b"GET /slow HTTP/1.1\r\nhost: local"] {
            let mut stream = TcpStream::connect(serving.address).await.unwrap();
            stream.write_all(partial_request).await.unwrap();
            let answer = answer(&mut stream);
            let answer = tokio::time::timeout(Duration::from_secs(30), answer).await;
            assert!(!answer.unwrap().contains("200 OK"));
        }
    }

    #[tokio::test]
    async fn slow_response_is_not_cut() {
        let serving = serving(QUICK).await;
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut stream).await.ends_with("\r\n\r\ndone"));
    }

    #[tokio::test]
    async fn shutdown_finishes_requests_and_ignores_idle_connections() {
        let serving = serving(LIMITS).await;
        let _idle = TcpStream::connect(serving.address).await.unwrap();
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        serving.end.send(()).unwrap();
        assert!(answer(&mut stream).await.ends_with("\r\n\r\ndone"));
        let served = tokio::time::timeout(LIMITS.drain / 2, serving.served).await;
        served.unwrap().unwrap();
    }

    #[tokio::test]
    async fn endless_body_does_not_delay_shutdown() {
        let serving = serving(ConnectionLimits {
            drain: Duration::from_millis(100),
            ..LIMITS
        })
        .await;
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        let half = b"POST /body HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf";
        stream.write_all(half).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        serving.end.send(()).unwrap();
        let served = tokio::time::timeout(LIMITS.drain / 2, serving.served).await;
        served.unwrap().unwrap();
        assert!(!answer(&mut stream).await.contains("200 OK"));
    }

    #[tokio::test]
    async fn idle_connections_yield_to_new_ones() {
        let serving = serving(LIMITS).await;
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.push(TcpStream::connect(serving.address).await.unwrap());
        }
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        stream.write_all(CLOSING).await.unwrap();
        let answered = tokio::time::timeout(LIMITS.head / 2, answer(&mut stream)).await;
        assert!(answered.unwrap().ends_with("\r\n\r\ndone"));
        // All but two connections were closed silently.
        for stream in &mut idle[..18] {
            let closed = tokio::time::timeout(LIMITS.head / 2, stream.read(&mut [0])).await;
            assert!(matches!(closed.unwrap(), Ok(0) | Err(_)));
        }
    }

    #[tokio::test]
    async fn busy_server_refuses_connections() {
        let serving = serving(LIMITS).await;
        let mut busy = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(serving.address).await.unwrap();
            stream.write_all(CLOSING).await.unwrap();
            busy.push(stream);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut refused = TcpStream::connect(serving.address).await.unwrap();
        assert!(answer(&mut refused).await.starts_with("HTTP/1.1 503"));
        for stream in &mut busy {
            assert!(answer(stream).await.ends_with("\r\n\r\ndone"));
        }
    }
}
