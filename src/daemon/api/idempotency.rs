//! The header by which a client has the same request made once, however often it sends it.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::{ApiResult, Problem};
use crate::daemon::authentication::Caller;

/// Characters of a key.
const LONGEST: usize = 255;

/// The key of a request.
pub fn key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default();
    match (1..=LONGEST).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "Idempotency-Key is not a text of 1 to 255 characters",
        )),
    }
}

/// As it is stored: another owner's may be the same.
pub fn of_owner(caller: &Caller, key: Option<String>) -> Option<String> {
    key.map(|key| serde_json::json!([caller.owner, key]).to_string())
}

/// What the request made, or one that was sent before with the same key.
pub fn answer(is_new: bool, address: String, made: impl Serialize) -> Response {
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    (status, [(header::LOCATION, address)], Json(made)).into_response()
}

pub fn of_another_request() -> Problem {
    let detail = "this Idempotency-Key was sent with another request";
    Problem::new(StatusCode::CONFLICT, detail).hint("choose another key")
}
