#![allow(clippy::unwrap_used)]

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use futures::StreamExt as _;
use tower_service::Service as _;

use super::*;

async fn send(limits: &BodyLimits, path: &str, body: Body) -> StatusCode {
    let count = async |body: Bytes| body.len().to_string();
    let mut router = Router::new()
        .route("/mcp", post(count))
        .route("/login", post(count))
        .route(GITHUB_WEBHOOK, post(count))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(limits.clone(), limit));
    let request = Request::post(path).body(body).unwrap();
    router.call(request).await.unwrap().status()
}

/// Creates a body in pieces, each after a delay.
fn trickle(pieces: usize, bytes: usize, every: Duration) -> Body {
    let pieces = futures::stream::iter(0..pieces).then(move |_| async move {
        tokio::time::sleep(every).await;
        Ok::<_, std::convert::Infallible>(vec![b'x'; bytes])
    });
    Body::from_stream(pieces)
}

#[tokio::test]
async fn each_route_has_size_limit() {
    let limits = BodyLimits::default();
    for (path, bytes, status) in [
        ("/login", MAX_SHORT_REQUEST, StatusCode::OK),
        (
            "/login",
            MAX_SHORT_REQUEST + 1,
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        ("/mcp", MAX_REQUEST_BYTES, StatusCode::OK),
        ("/mcp", MAX_REQUEST_BYTES + 1, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let declared = Body::from(vec![b'x'; bytes]);
        assert_eq!(send(&limits, path, declared).await, status, "{path}");
        let undeclared = trickle(1, bytes, Duration::ZERO);
        assert_eq!(send(&limits, path, undeclared).await, status, "{path}");
    }
    assert_eq!(limits.held.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn stalled_or_trickling_body_is_refused() {
    let limits = BodyLimits {
        grace: Duration::from_millis(300),
        bytes_per_second: 1000,
        ..BodyLimits::default()
    };
    let never = Body::from_stream(futures::stream::pending::<Result<Bytes, BoxError>>());
    let refused = StatusCode::REQUEST_TIMEOUT;
    assert_eq!(send(&limits, "/mcp", never).await, refused);
    let slow = trickle(10_000, 1, Duration::from_millis(50));
    assert_eq!(send(&limits, "/mcp", slow).await, refused);
    let steady = trickle(10, 1000, Duration::from_millis(50));
    assert_eq!(send(&limits, "/mcp", steady).await, StatusCode::OK);
}

#[tokio::test]
async fn only_large_bodies_share_memory() {
    let limits = BodyLimits {
        shared_bytes: 4 << 20,
        ..BodyLimits::default()
    };
    limits.held.store(2 << 20, Ordering::Relaxed);
    let large = || Body::from(vec![b'x'; 3 << 20]);
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    assert_eq!(send(&limits, "/mcp", large()).await, busy);
    assert_eq!(limits.held.load(Ordering::Relaxed), 2 << 20);
    limits.held.store(4 << 20, Ordering::Relaxed);
    let short = Body::from(vec![b'x'; 64 << 10]);
    assert_eq!(send(&limits, "/mcp", short).await, StatusCode::OK);
    limits.held.store(0, Ordering::Relaxed);
    assert_eq!(send(&limits, "/mcp", large()).await, StatusCode::OK);
}

#[tokio::test]
async fn open_routes_have_own_memory() {
    let limits = BodyLimits::default();
    limits.held_by_open.store(16 << 20, Ordering::Relaxed);
    let large = || Body::from(vec![b'x'; 1 << 20]);
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    assert_eq!(send(&limits, GITHUB_WEBHOOK, large()).await, busy);
    assert_eq!(send(&limits, "/mcp", large()).await, StatusCode::OK);
}
