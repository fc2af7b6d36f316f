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
