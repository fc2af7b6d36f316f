//! The Idempotency-Key header: a client can repeat a request without creating a second job.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Required, Type};

use super::{ApiResult, Problem};
use crate::authentication::Caller;

/// Maximum characters of a key.
const MAX_KEY_LEN: usize = 255;
/// Pattern of a key: the characters that a header carries unchanged. Spaces around a key are not allowed.
const PATTERN: &str = "^[!-~]([ -~]*[!-~])?$";

/// The header, for the API description.
pub(super) struct KeyHeader;

impl utoipa::IntoParams for KeyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_KEY_LEN))
            .pattern(Some(PATTERN));
        let header = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(
                "chosen by the client; a repeated request creates no second job",
            ))
            .schema(Some(key));
        vec![header.build()]
    }
}

/// Returns the key of a request.
pub(super) fn key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default();
    match (1..=MAX_KEY_LEN).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::bad_request(format!(
            "Idempotency-Key is not a text of 1 to {MAX_KEY_LEN} ASCII characters"
        ))),
    }
}

/// Returns the stored form of a key, which includes the owner: keys of different owners may be equal.
pub(super) fn of_owner(caller: &Caller, key: Option<String>) -> Option<String> {
    key.map(|key| serde_json::json!([caller.owner, key]).to_string())
}

/// Responds with the new resource (201), or with the one from an earlier request with the same key (200).
pub(super) fn answer(is_new: bool, address: String, resource: impl Serialize) -> Response {
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    (status, [(header::LOCATION, address)], Json(resource)).into_response()
}

pub(super) fn of_another_request() -> Problem {
    let detail = "this Idempotency-Key was used for another request";
    Problem::conflict(detail).hint("choose another key")
}
