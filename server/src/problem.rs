//! API errors: problem+json (RFC 9457), with a hint.

use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use testwright_sandboxes::Shortage;

use super::fields::MAX_REQUEST_BYTES;
use testwright_config::error::{Error, Kind};

/// Hint for an unknown id of a run.
pub(crate) const LIST_HINT: &str = "GET /v1/runs lists all runs";
/// Start of the library's message on JSON with a wrong type.
const WRONG_TYPE: &str = "Failed to deserialize the JSON body into the target type: ";

/// An error, with a hint for fixing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the title names the kind of problem.
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    /// Status code of the response.
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    /// Creates a problem without a hint.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
        }
    }

    /// Creates a problem for a malformed request: 400.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Creates a problem for something that does not exist: 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// Creates a problem for a request that the state of a job does not allow: 409.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// Creates a problem for a request with an invalid value: 422.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Creates a problem for a request that a library refused.
    pub fn unread(status: StatusCode, detail: impl Into<String>) -> Self {
        let problem = Problem::new(status, detail);
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                problem.hint(format!("send at most {MAX_REQUEST_BYTES} bytes"))
            }
            _ => problem,
        }
    }

    /// Sets the hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Formats the detail and the hint for people.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {hint}", self.detail),
            None => self.detail.clone(),
        }
    }

    /// Creates the answer, 404, for an unknown run.
    pub fn no_run() -> Self {
        Problem::not_found("no run has this id").hint(LIST_HINT)
    }

    /// Creates the answer, 404, for an unknown matrix.
    pub fn no_matrix() -> Self {
        Problem::not_found("no matrix has this id").hint("GET /v1/matrices lists all matrices")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, body).into_response()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.with_cause();
        let status = match error.kind {
            Kind::Usage | Kind::Unauthorized => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Exhausted(shortage) => {
                tracing::error!(detail, "a request failed");
                let status = match shortage {
                    Shortage::Disk => StatusCode::INSUFFICIENT_STORAGE,
                    _ => StatusCode::SERVICE_UNAVAILABLE,
                };
                return Problem::new(status, format!("{error}: {shortage}"))
                    .hint(format!("{}, then try again", shortage.hint()));
            }
            // Only a shutdown interrupts a request.
            Kind::Unavailable | Kind::Interrupted => {
                tracing::error!(detail, "a request failed");
                return Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
                    .hint("try again later; the server's log has details");
            }
            Kind::Nothing | Kind::Infrastructure => {
                // Internal causes are only for operators.
                tracing::error!(detail, "a request failed");
                return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
                    .hint("see the server's log");
            }
        };
        Problem {
            hint: error.hint,
            ..Problem::new(status, detail)
        }
    }
}

/// Parses JSON as the bodies of requests are parsed, so that an error names the field. The error is one clause, without
/// the position: a client that sends an object does not see the text of it.
pub(crate) fn parse_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    let parsed = Json::<T>::from_bytes(json);
    parsed.map(|Json(value)| value).map_err(|rejection| {
        let text = name_object(&rejection.body_text());
        let text = text.strip_prefix(WRONG_TYPE).unwrap_or(&text);
        let end = text.rfind(" at line ").unwrap_or(text.len());
        text[..end].to_owned()
    })
}

/// Replaces the name of a type of this program, which clients do not know.
fn name_object(text: &str) -> String {
    let Some((before, after)) = text.split_once("expected struct ") else {
        return text.to_owned();
    };
    let rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let rest = match rest.strip_prefix(" with ") {
        Some(count) => {
            let noun = count.trim_start_matches(|c: char| c.is_ascii_digit());
            let rest = noun.strip_prefix(" elements");
            rest.or(noun.strip_prefix(" element")).unwrap_or(noun)
        }
        None => rest,
    };
    format!("{before}expected a JSON object{rest}")
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let text = name_object(&rejection.body_text());
        let problem = Problem::unread(rejection.status(), text);
        match problem.hint {
            Some(_) => problem,
            None => problem.hint("see /v1/openapi.json for the expected format"),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        let problem = Problem::new(rejection.status(), rejection.body_text());
        problem.hint("see /v1/openapi.json for the expected format")
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        Problem::unread(rejection.status(), rejection.body_text())
    }
}

pub(crate) async fn not_found() -> Problem {
    Problem::not_found("this address does not exist").hint("see /v1/openapi.json for all addresses")
}

pub(crate) async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this address does not support this method",
    )
    .hint("see /v1/openapi.json for the methods of each address")
}

#[cfg(test)]
mod tests {
    use crate::request::RunRequest;

    use super::*;

    #[test]
    fn wrong_types_name_the_field() {
        let error = |json: &str| parse_json::<RunRequest>(json.as_bytes()).err();
        assert_eq!(error(r#"{"issue": "it fails"}"#), None);
        for (json, expected) in [
            (
                r#"{"issue": 5}"#,
                "issue: invalid type: integer `5`, expected a string",
            ),
            (
                r#"{"issue": "a", "limits": 5}"#,
                "limits: invalid type: integer `5`, expected a JSON object",
            ),
            ("{}", "missing field `issue`"),
            ("[]", "invalid length 0, expected a JSON object"),
            ("7", "invalid type: integer `7`, expected a JSON object"),
        ] {
            assert_eq!(error(json).as_deref(), Some(expected), "{json}");
        }
        let text = "expected struct Cell with 1 element at line 1";
        assert_eq!(name_object(text), "expected a JSON object at line 1");
    }
}
