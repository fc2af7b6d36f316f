//! Headers and errors of all responses: errors of libraries become problems too, and browsers must not guess media
//! types.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::api::Problem;

/// Maximum bytes of a library's error text.
const MAX_TEXT_LEN: usize = 64 << 10;

pub(crate) async fn finish_response(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && is_text(response.headers()) {
        response = as_problem(response).await;
    }
    response.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Returns whether the body is plain text, as errors of libraries are. Some have no content type.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
}

/// Turns an error of a library into a problem and keeps the headers that do not describe the body.
async fn as_problem(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT_LEN).await.unwrap_or_default();
    let detail = match String::from_utf8_lossy(&text).trim() {
        "" => parts
            .status
            .canonical_reason()
            .unwrap_or("error")
            .to_owned(),
        text => text.to_owned(),
    };
    let problem = Problem::unread(parts.status, detail).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    for (name, value) in problem.headers() {
        parts.headers.insert(name, value.clone());
    }
    Response::from_parts(parts, problem.into_body())
}
