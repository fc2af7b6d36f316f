//! The header by which a client has the same request made once, however often it sends it.

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
/// What a header can hold and what comes through as it was sent: no other characters, and no space around them.
const PATTERN: &str = "^[!-~]([ -~]*[!-~])?$";

/// The header, for the description.
pub struct KeyHeader;

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
                "of the client's choice: the same request is not made twice",
            ))
            .schema(Some(key));
        vec![header.build()]
    }
}

/// The key of a request.
pub fn key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default();
    match (1..=MAX_KEY_LEN).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("Idempotency-Key is not a text of 1 to {MAX_KEY_LEN} characters of ASCII"),
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
