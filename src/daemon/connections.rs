//! Accepts connections and answers their requests until an end. As `axum::serve`, but nobody holds a connection open
//! without saying something: what a client has to send before it is answered is due within a time.

use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// For the head of a request, from the connection's begin or the end of the answer before.
pub const HEAD: Duration = Duration::from_secs(30);

/// Answers until `end`, and what was asked before it to its end.
pub async fn serve(
    mut listener: TcpListener,
    router: Router,
    head: Duration,
    end: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head);
    let graceful = GracefulShutdown::new();
    let mut end = std::pin::pin!(end);
    loop {
        // Waits and goes on where the system gives out no connection.
        let (stream, _) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut end => break,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    const REQUEST: &[u8] = b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n";

    struct Serving {
        address: std::net::SocketAddr,
        end: oneshot::Sender<()>,
        served: tokio::task::JoinHandle<()>,
    }

    async fn serving(head: Duration) -> Serving {
        let slow = async || {
            tokio::time::sleep(Duration::from_millis(300)).await;
            "done"
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let router = Router::new().route("/slow", get(slow));
        let served = tokio::spawn(serve(listener, router, head, async { drop(ended.await) }));
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
    async fn a_connection_that_says_half_a_request_or_nothing_is_closed() {
        let serving = serving(Duration::from_millis(100)).await;
        for said in [&b""[..], b"GET /slow HTTP/1.1\r\nhost: local"] {
            let mut stream = TcpStream::connect(serving.address).await.unwrap();
            stream.write_all(said).await.unwrap();
            let answer = answer(&mut stream);
            let answer = tokio::time::timeout(Duration::from_secs(30), answer).await;
            assert!(!answer.unwrap().contains("200 OK"));
        }
    }

    #[tokio::test]
    async fn a_slow_answer_is_no_slow_request() {
        let serving = serving(Duration::from_millis(100)).await;
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut stream).await.ends_with("\r\n\r\ndone"));
    }

    #[tokio::test]
    async fn what_was_asked_is_answered_before_the_end_and_idle_connections_do_not_hold_it_up() {
        let serving = serving(HEAD).await;
        let _idle = TcpStream::connect(serving.address).await.unwrap();
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        serving.end.send(()).unwrap();
        assert!(answer(&mut stream).await.ends_with("\r\n\r\ndone"));
        let served = tokio::time::timeout(HEAD / 2, serving.served).await;
        served.unwrap().unwrap();
    }
}
