//! A proxy for the hosts that the user allowed, and no others. TLS passes through it unread.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reqwest::Url;

use super::response::{Body, text};
use super::upstream::Refusal;
use super::{Inner, lock};

/// Headers of requests without TLS, and of their responses, that are passed on.
const REQUEST_HEADERS: [HeaderName; 7] = [
    header::ACCEPT,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::CACHE_CONTROL,
    header::USER_AGENT,
];
pub(super) const RESPONSE_HEADERS: [HeaderName; 9] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_ENCODING,
    header::ACCEPT_RANGES,
    header::LAST_MODIFIED,
    header::ETAG,
    header::LOCATION,
    header::DATE,
];

enum Permission {
    /// Allowed by the user, whatever the address.
    ByUser,
    /// Allowed for the current step, if the address is public.
    Temporary,
}

fn permission(inner: &Inner, host: &str, port: u16) -> Option<Permission> {
    if inner.offline {
        return None;
    }
    if inner.hosts.iter().any(|rule| rule.matches(host, port)) {
        return Some(Permission::ByUser);
    }
    let for_now = lock(&inner.temporary_hosts);
    let open = for_now.iter().any(|rule| rule.matches(host, port));
    open.then_some(Permission::Temporary)
}

fn refuse(inner: &Inner, host: &str) -> Response<Body> {
    inner.refused(host);
    text(
        StatusCode::FORBIDDEN,
        &format!("{host}: not allowed while an environment is built (build.allowed-hosts)"),
    )
}

fn answer(inner: &Inner, refusal: &Refusal) -> Response<Body> {
    match refusal {
        Refusal::Forbidden(host) => refuse(inner, host),
        Refusal::Failed(why) => {
            inner.note(format!("network: {why}"));
            text(StatusCode::BAD_GATEWAY, why)
        }
    }
}

/// Handles `CONNECT host:port`.
pub(super) async fn tunnel(inner: Arc<Inner>, request: Request<Incoming>) -> Response<Body> {
    let target = request.uri().authority().cloned();
    let Some((host, port)) = target.and_then(|t| Some((t.host().to_owned(), t.port_u16()?))) else {
        return text(StatusCode::BAD_REQUEST, "CONNECT requires host:port");
    };
    let Some(allowed) = permission(&inner, &host, port) else {
        return refuse(&inner, &format!("{host}:{port}"));
    };
    // This permit outlives that of the connection, which ends when the connection becomes a tunnel.
    let Ok(permit) = inner.connections.clone().try_acquire_owned() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    };
    let is_by_user = matches!(allowed, Permission::ByUser);
    let mut out = match inner.upstream.dial(&host, port, is_by_user).await {
        Ok(stream) => stream,
        Err(refusal) => return answer(&inner, &refusal),
    };
    inner.clone().spawn(async move {
        let _permit = permit;
        let Ok(upgraded) = hyper::upgrade::on(request).await else {
            return;
        };
        let mut stream = TokioIo::new(upgraded);
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut out).await;
    });
    let mut response = text(StatusCode::OK, "");
    *response.body_mut() = http_body_util::Empty::new()
        .map_err(|never| match never {})
        .boxed_unsync();
    response.headers_mut().clear();
    response
}

/// Handles `GET http://host/path`.
pub(super) async fn request(inner: &Arc<Inner>, request: &Request<Incoming>) -> Response<Body> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are allowed without TLS",
        );
    }
    let url = Url::parse(&request.uri().to_string());
    let Some(url) = url
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
    else {
        return text(StatusCode::BAD_REQUEST, "not a valid http URL");
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let Some(allowed) = permission(inner, &host, port) else {
        return refuse(inner, &format!("{host}:{port}"));
    };
    let user_hosts = match allowed {
        Permission::ByUser => inner.hosts.as_slice(),
        Permission::Temporary => &[],
    };
    let headers = pick(request.headers(), &REQUEST_HEADERS);
    let got = inner
        .upstream
        .get(request.method(), url, &headers, None, user_hosts)
        .await;
    match got {
        Ok(response) => pass_response(response),
        Err(refusal) => answer(inner, &refusal),
    }
}

pub(super) fn pick(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::new();
    for name in names {
        if let Some(value) = headers.get(name) {
            picked.insert(name.clone(), value.clone());
        }
    }
    picked
}

/// Passes a response on unchanged, except for its headers.
pub(super) fn pass_response(response: reqwest::Response) -> Response<Body> {
    let (status, headers) = (
        response.status(),
        pick(response.headers(), &RESPONSE_HEADERS),
    );
    let body: reqwest::Body = response.into();
    let mut passed = Response::new(body.map_err(std::io::Error::other).boxed_unsync());
    *passed.status_mut() = status;
    *passed.headers_mut() = headers;
    passed
}
