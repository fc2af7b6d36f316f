//! The HTTP server for sandboxes, which routes requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::response::{Body, text};
use super::{Inner, forward, index, upstream};

/// Time limit for a client to send the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(120);

/// Serves one connection of a sandbox, or closes it if too many are open.
pub(super) async fn connection(
    inner: Arc<Inner>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let Ok(_permit) = inner.connections.clone().try_acquire_owned() else {
        return;
    };
    let service = service_fn(move |request| {
        let inner = inner.clone();
        async move { Ok::<_, Infallible>(answer(inner, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(1 << 16)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "a connection of a sandbox ended");
    }
}

async fn answer(inner: Arc<Inner>, request: Request<Incoming>) -> Response<Body> {
    let proxied = request.uri().scheme().is_some();
    if request.method() == Method::CONNECT || proxied {
        let login = upstream::basic("testwright", &inner.token);
        let authorization = request.headers().get(PROXY_AUTHORIZATION);
        if authorization.map(HeaderValue::as_bytes) != Some(login.as_bytes()) {
            let mut response = text(
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                "use the user and password from the proxy's URL",
            );
            let basic = HeaderValue::from_static("Basic realm=\"testwright\"");
            response.headers_mut().insert(PROXY_AUTHENTICATE, basic);
            return response;
        }
        return if proxied {
            forward::request(&inner, &request).await
        } else {
            forward::tunnel(inner, request).await
        };
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are allowed",
        );
    }
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    if parts.first() != Some(&inner.token.as_str()) {
        return text(StatusCode::NOT_FOUND, "not found");
    }
    match parts.as_slice() {
        [_, "index", id, "simple", project, ""] => {
            index::page(&inner, id, project, request.headers()).await
        }
        [_, "files", kind, id, project, file] => {
            index::file(inner.clone(), kind, id, project, file, &request).await
        }
        _ => text(StatusCode::NOT_FOUND, "not found"),
    }
}
