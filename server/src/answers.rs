//! What every answer has, whoever gives it: errors of libraries are problems as well, and no browser guesses what a body is.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::api::Problem;

/// Bytes of what a library says of an error.
const MAX_TEXT_LEN: usize = 64 << 10;

pub async fn complete(request: Request, next: Next) -> Response {
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

/// Libraries leave out that it is one.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
}

/// With all headers that do not speak of the body.
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
