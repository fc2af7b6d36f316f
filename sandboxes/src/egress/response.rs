//! Responses to sandboxes, and their bodies.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

pub(super) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

pub(super) fn text(status: StatusCode, content: &str) -> Response<Body> {
    let mut response = full_response(format!("{content}\n").into());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

pub(super) fn full_response(content: Bytes) -> Response<Body> {
    Response::new(
        Full::new(content)
            .map_err(|never| match never {})
            .boxed_unsync(),
    )
}
